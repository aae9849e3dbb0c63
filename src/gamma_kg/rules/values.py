"""What the values of classes show of each other: handed down from a class to those under it, and telling sisters apart.

A chilled beam is not tagged as active where its kinds repeat its tags and one of them is passive, and what has drafts
under it and much else is no draft itself. And an active beam is not tagged as passive where that tag is all that tells
the passive one, its sister, from it. Both are habits of a graph's makers, counted relation by relation.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.inverse import inverse_of
from gamma_kg.rules.bounds import at_least, at_most
from gamma_kg.rules.closure import Closures

IntArray = NDArray[np.int64]
# Facts of a relation that are looked at, and classes around each.
LOOKED_AT = 300
MOST_AROUND = 20
# A relation is handed down if those under a class repeat what it has so often, for certain.
MIN_REPEATED = 0.6
# Sisters are told apart if the one has all that the other has in so few pairs; fewer values than this say nothing.
MAX_NESTED = 0.1
LEAST_VALUES = 3
Seen = tuple[int, int]


class Values:
    """Asked fact by fact, of relations other than those of the hierarchy itself."""

    def __init__(self, closures: Closures, up: tuple[int, ...]) -> None:
        """`up`: relations from a thing to its type, and from a class to a wider one."""
        self._closures, self._up = closures, up
        self._down = tuple(inverse_of(r, closures.num_relations) for r in up)
        self.repeated = lru_cache(maxsize=None)(self._repeated)
        self.nested = lru_cache(maxsize=None)(self._nested)

    def says_no(self, head: int, direct: int, tail: int) -> bool:
        """Whether those under the head, or its sisters, speak against a fact."""
        if direct in self._up or not self._up:
            return False
        return self._most_below_lack_it(head, direct, tail) or self._tells_a_sister_apart(head, direct, tail)

    def _most_below_lack_it(self, head: int, direct: int, tail: int) -> bool:
        below = self._step(head, self._down)
        with_values = len(self._with_values(below, direct))
        have_it = sum(tail in self._closures.ends(one, direct) for one in below.tolist())
        if with_values and 2 * have_it <= with_values and self._is_handed_down(direct, to_all=False):
            return True
        # Where even those who have nothing else repeat it, to have nothing is to lack it. But where all lack it, the
        # value may just not have been written down yet.
        return 0 < 2 * have_it <= len(below) and self._is_handed_down(direct, to_all=True)

    def _is_handed_down(self, direct: int, *, to_all: bool) -> bool:
        return float(at_least(*self.repeated(direct, to_all))) >= MIN_REPEATED

    def _tells_a_sister_apart(self, head: int, direct: int, tail: int) -> bool:
        own = set(self._closures.ends(head, direct).tolist())
        if len(own) < LEAST_VALUES - 1:
            return False
        holders = self._closures.ends(tail, inverse_of(direct, self._closures.num_relations))
        for sister in np.intersect1d(self._sisters(head), holders).tolist():
            values = set(self._closures.ends(sister, direct).tolist())
            if len(values) >= LEAST_VALUES and values - own == {tail}:
                return float(at_most(*self.nested(direct))) <= MAX_NESTED
        return False

    def _repeated(self, direct: int, to_all: bool) -> Seen:
        """How often those under a class, all or those with values of their own, have a value of the class too."""
        found, of = 0, 0
        for head, tail in self._looked_at(direct):
            below = self._step(head, self._down)
            for one in (below if to_all else self._with_values(below, direct))[:MOST_AROUND].tolist():
                found += tail in self._closures.ends(one, direct)
                of += 1
        return found, of

    def _nested(self, direct: int) -> Seen:
        """Pairs of sisters of which the one has all values of the other, among those with enough."""
        found, of = 0, 0
        for head in dict.fromkeys(head for head, _ in self._looked_at(direct)):
            own = set(self._closures.ends(head, direct).tolist())
            for sister in self._with_values(self._sisters(head), direct)[:MOST_AROUND].tolist():
                values = set(self._closures.ends(sister, direct).tolist())
                if min(len(own), len(values)) >= LEAST_VALUES:
                    found += values <= own
                    of += 1
        return found, of

    def _sisters(self, thing: int) -> IntArray:
        parents = self._step(thing, self._up)
        found = self._together([self._closures.step(parents, r) for r in self._down])
        return np.asarray(found[found != thing])

    def _step(self, thing: int, relations: tuple[int, ...]) -> IntArray:
        return self._together([self._closures.ends(thing, r) for r in relations])

    def _together(self, parts: list[IntArray]) -> IntArray:
        return np.asarray(np.unique(np.concatenate(parts)))

    def _with_values(self, things: IntArray, direct: int) -> IntArray:
        return np.array([one for one in things.tolist() if len(self._closures.ends(one, direct))], dtype=np.int64)

    def _looked_at(self, direct: int) -> list[tuple[int, int]]:
        head, tail = self._closures.pairs(direct)
        rows = np.unique(np.linspace(0, len(head) - 1, min(len(head), LOOKED_AT)).astype(np.int64))
        return list(zip(head[rows].tolist(), tail[rows].tolist(), strict=True))
