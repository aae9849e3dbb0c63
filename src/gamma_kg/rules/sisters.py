"""Classes under two sisters: a thing under two children of one class follows others that are, or it is the first.

An activator is a regulator of enzymes and one of kinases, and so are inhibitors; nothing is an activator and an
inhibitor. Two sisters that share nothing may still get a first child in common, but where a graph's makers seldom do
that, nobody need propose it. `rules/apart.py` is about large classes, where sharing nothing is proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.inverse import inverse_of
from gamma_kg.rules.bounds import at_most
from gamma_kg.rules.closure import Closures

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
# Facts of classes with several wider ones that are looked at, and the share that may be the first under two sisters.
LOOKED_AT = 150
MAX_FIRST = 0.3
# Sisters with fewer under them (themselves counted) say nothing.
LEAST_MEMBERS = 4
KEPT = 256
Fact = tuple[int, int]  # a class and a wider one


class Sisters:
    """Asked fact by fact."""

    def __init__(self, closures: Closures, wider: list[int]) -> None:
        """`wider`: relations from a class to a wider one."""
        self._closures, self._wider = closures, wider
        self._narrower = [inverse_of(r, closures.num_relations) for r in wider]
        self._under = lru_cache(maxsize=KEPT)(self._reach_down)

    def would_be_first(self, low: int, high: int) -> bool:
        """Whether a class would be the first under two sisters, in a graph where that is rare."""
        return self.is_rare and self._is_first(low, high, None) is True

    @cached_property
    def is_rare(self) -> bool:
        """Whether facts that were the first under two sisters are few, among those that sisters can tell of."""
        first, of = self.seen
        return of > 0 and float(at_most(first, of)) <= MAX_FIRST

    @cached_property
    def seen(self) -> tuple[int, int]:
        """How many facts put a class under two sisters that share nothing else, and how many could have."""
        low, high = (
            np.concatenate([self._closures.pairs(r)[end] for r in self._wider] or [np.empty(0, dtype=np.int64)])
            for end in (0, 1)
        )
        _, at, count = np.unique(low, return_inverse=True, return_counts=True)
        several = np.flatnonzero(count[at] > 1)
        rows = several[np.unique(np.linspace(0, len(several) - 1, min(len(several), LOOKED_AT)).astype(np.int64))]
        told = [self._is_first(int(low[row]), int(high[row]), (int(low[row]), int(high[row]))) for row in rows]
        return sum(verdict is True for verdict in told), sum(verdict is not None for verdict in told)

    def _is_first(self, low: int, high: int, without: Fact | None) -> bool | None:
        """Whether a fact puts a class under two sisters that share nothing, as if `without` were not stored; None if
        there are no sisters to tell of."""
        over_low, over_high = (set(self._walk(one, self._wider, without)) for one in (low, high))
        if high in over_low:
            return None
        can_tell = False
        for one, other in self._sisters(over_low, over_high):
            members = [self._members(sister, without) for sister in (one, other)]
            if min(int(part.sum()) for part in members) >= LEAST_MEMBERS:
                can_tell = True
                if not (members[0] & members[1]).any():
                    return True
        return False if can_tell else None

    def _sisters(self, over_low: set[int], over_high: set[int]) -> Iterator[tuple[int, int]]:
        """Children of one class, of which the one is in the first set only and the other in the second; or the tops of
        both, which are sisters under nothing."""
        common = over_low & over_high
        families = [set(self._ends([parent], self._narrower)) for parent in common]
        if not common:
            families = [{one for one in over_low | over_high if not self._ends([one], self._wider)}]
        for family in families:
            yield from product((family & over_low) - over_high, (family & over_high) - over_low)

    def _members(self, sister: int, without: Fact | None) -> BoolArray:
        members = self._under(sister)
        if without is None or not members[without[1]] or self._under(without[0])[sister]:
            return members
        # What is not under the fact's lower end stays. Of what is, that stays which another fact puts under these.
        low, high = without
        below = self._under(low)
        stay = members & ~below
        again: list[IntArray] = []
        for relation in self._wider:
            child, parent = self._closures.pairs(relation)
            leads = below[child] & stay[parent] & ~((child == low) & (parent == high))
            again.append(child[leads])
        if any(map(len, again)):
            stay = stay | self._closures.reach_from(np.concatenate(again), *self._narrower)
        return np.asarray(stay)

    def _reach_down(self, sister: int) -> BoolArray:
        return self._closures.reach(sister, *self._narrower)

    def _walk(self, start: int, relations: list[int], without: Fact | None) -> Iterable[int]:
        """All that is reached, not over one fact (in either direction)."""
        found, waiting = {start}, [start]
        while waiting:
            at = waiting.pop()
            for end in self._ends([at], relations):
                if end not in found and (without is None or (at, end) not in (without, without[::-1])):
                    found.add(end)
                    waiting.append(end)
        return found

    def _ends(self, nodes: list[int], relations: list[int]) -> list[int]:
        at = np.array(nodes, dtype=np.int64)
        return [end for relation in relations for end in self._closures.step(at, relation).tolist()]
