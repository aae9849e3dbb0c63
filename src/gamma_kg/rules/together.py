"""Which new facts can stand in one list: each agrees with the graph, and with those that come before it.

Two proposals may each be fine and exclude each other: a class under its sister and the sister under it, two values
where there can be one, two classes of which nothing is both. Or the one gives the other: a class above a proposed
class. The one that comes first stays.
"""

from __future__ import annotations

import numpy as np

from gamma_kg.graph.inverse import inverse_of
from gamma_kg.rules.large import SampledRules
from gamma_kg.rules.rules import Rules


class Together:
    """Facts by id, admitted one by one."""

    def __init__(self, rules: Rules | SampledRules) -> None:
        self._rules = rules
        self._ends: dict[tuple[int, int], list[int]] = {}  # (source, relation id) → answers admitted
        self._pairs: dict[int, list[tuple[int, int]]] = {}  # direct relation → (head, tail) admitted

    def admits(self, head: int, direct: int, tail: int) -> bool:
        """Whether a fact agrees with those admitted so far; then it is one of them."""
        inverse = inverse_of(direct, self._rules.num_relations)
        if self._is_against(head, direct, tail, inverse):
            return False
        self._ends.setdefault((head, direct), []).append(tail)
        self._ends.setdefault((tail, inverse), []).append(head)
        self._pairs.setdefault(direct, []).append((head, tail))
        return True

    def _is_against(self, head: int, direct: int, tail: int, inverse: int) -> bool:
        rules, ends = self._rules, self._ends
        if rules.is_never_symmetric(direct) and head in ends.get((tail, direct), ()):
            return True
        for source, relation in ((head, direct), (tail, inverse)):
            if (source, relation) in ends and rules.has_single_answers(relation):
                return True
        if not isinstance(rules, Rules):
            return False
        if rules.is_acyclic(direct) and self._leads(rules, tail, direct, head):
            return True
        if self._follows(rules, head, direct, tail):
            return True
        return any(rules.axioms.are_disjoint(tail, other, direct) for other in ends.get((head, direct), ()))

    def _follows(self, rules: Rules, head: int, direct: int, tail: int) -> bool:
        """Whether an admitted fact gives this one: of something above the head, with something below the tail."""
        ways, pairs = rules.implied.ways(direct), self._pairs.get(direct)
        if ways is None or not pairs:
            return False
        walk, num = rules.closures, rules.num_relations
        above = walk.reach(head, *ways.heads)
        below = walk.reach(tail, *(inverse_of(r, num) for r in ways.tails))
        return any(above[one] and below[other] for one, other in pairs)

    def _leads(self, rules: Rules, start: int, direct: int, end: int) -> bool:
        """Whether stored and admitted facts of a relation lead from one thing to another."""
        pairs = np.array(self._pairs.get(direct, ()), dtype=np.int64).reshape(-1, 2)
        if not len(pairs):
            return False  # stored ones alone were looked at before
        reached = rules.closures.reach(start, direct)
        while not reached[end]:
            found = pairs[reached[pairs[:, 0]] & ~reached[pairs[:, 1]], 1]
            if not len(found):
                return False
            reached |= rules.closures.reach_from(found, direct)
        return True
