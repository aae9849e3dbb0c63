"""Facts that need no proposal because stored facts give them already: a wider class of a value, the end of a chain.

| relation                                  | a candidate (x, r, z) is implied if                                     |
|-------------------------------------------|-------------------------------------------------------------------------|
| a wider class, a type                     | z is above a class that x, or its equivalent, is stored under           |
| stated of all members of a class (`some`) | x or a class above it is stored with z, or with something of the kind z |
| declared transitive                       | a chain of r leads from x to z                                          |
| without cycles                            | the same, where the graph never writes such shortcuts down              |

By an ontology's meaning such a fact is true; where only the graph's habit tells, it is true and unwritten (a class
above a class), or wrong (the mother of a mother): nobody has written such a fact down. N entities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.inverse import direct_of, inverse_of, is_inverse
from gamma_kg.rules.axioms import Axioms
from gamma_kg.rules.bounds import never
from gamma_kg.rules.closure import Closures

BoolArray = NDArray[np.bool_]
# Facts of a relation that are looked at for shortcuts, and the share of them that the bound must rule out.
LOOKED_AT = 1_000
MAX_SHORTCUTS = 0.04


@dataclass(frozen=True)
class Ways:
    """How facts of one relation carry over: from what is above the head, and to what is above the tail."""

    heads: tuple[int, ...]
    tails: tuple[int, ...]
    is_meant: bool  # an ontology says so; else the graph's facts show it
    shortcuts: tuple[int, int] = (0, 0)  # facts that others give already, among those looked at


class Implied:
    """What follows from the facts of one graph, asked query by query."""

    def __init__(self, closures: Closures, axioms: Axioms, acyclic: frozenset[int]) -> None:
        """`acyclic`: relations without cycles."""
        self._closures, self._axioms, self._acyclic = closures, axioms, acyclic
        self.ways = lru_cache(maxsize=None)(self._ways)

    def by(self, source: int, relation: int, *, meant: bool = True) -> BoolArray | None:
        """Candidates that are implied, stored ones among them, (N,); None if nothing can be. Without `meant` only
        those that the graph's habit rules out."""
        ways = self.ways(direct_of(relation, self._closures.num_relations))
        if ways is None or (ways.is_meant and not meant):
            return None
        found = self._carried(source, relation, ways.heads, ways.tails)
        if direct_of(relation, self._closures.num_relations) in self._axioms.wider:
            found |= self._closures.reach(source, *self._axioms.equal)
        return found

    def are_equal(self, head: int, direct: int, tail: int) -> bool:
        """Whether a class is under another because they are declared equivalent."""
        axioms = self._axioms
        return direct in axioms.wider and head != tail and bool(self._closures.reach(head, *axioms.equal)[tail])

    def would_give_stored(self, source: int, relation: int) -> BoolArray | None:
        """Candidates whose fact would give a stored one: something narrower than a value, the same of a wider class;
        stored ones among them, (N,); None if nothing can."""
        num = self._closures.num_relations
        ways = self.ways(direct_of(relation, num))
        if ways is None:
            return None
        down = (tuple(inverse_of(r, num) for r in part) for part in (ways.heads, ways.tails))
        return self._carried(source, relation, *down)

    def is_given_by_another(self, head: int, direct: int, tail: int) -> bool:
        """Whether a stored fact follows from another one."""
        ways, walk = self.ways(direct), self._closures
        if ways is None:
            return False
        values = walk.ends(head, direct)
        above = np.flatnonzero(walk.reach(head, *ways.heads))
        others = np.concatenate([values[values != tail], walk.step(above[above != head], direct)])
        return bool(walk.reach_from(others, *ways.tails)[tail])

    def _carried(self, source: int, relation: int, heads: tuple[int, ...], tails: tuple[int, ...]) -> BoolArray:
        """Where facts of what is reached over `heads` lead over `tails`, for a query from either end, (N,)."""
        num, walk = self._closures.num_relations, self._closures
        first, last = heads, tails
        if is_inverse(relation, num):
            first, last = (tuple(inverse_of(r, num) for r in part) for part in (tails, heads))
        reached = np.flatnonzero(walk.reach(source, *first)) if first else np.array([source])
        return walk.reach_from(walk.step(reached, relation), *last)

    def why(self, head: int, direct: int, tail: int) -> tuple[int, int] | None:
        """The stored fact (its head and tail) from which the fact follows; None if it does not."""
        ways = self.ways(direct)
        if ways is None:
            return None
        walk = self._closures
        for other in np.flatnonzero(walk.reach(head, *ways.heads)).tolist() if ways.heads else [head]:
            for value in walk.ends(other, direct).tolist():
                if walk.reach(value, *ways.tails)[tail]:
                    return other, value
        return None

    def _ways(self, direct: int) -> Ways | None:
        axioms = self._axioms
        above = (*axioms.types, *axioms.wider)
        if axioms.says("some", direct):
            own = (direct,) if direct in axioms.transitive else ()
            return Ways((*above, *axioms.equal), (*above, *axioms.equal, *own), is_meant=True)
        if direct in above:
            # What is under a class is under its equivalents; a type is one of the thing and no more.
            heads = axioms.equal if direct in axioms.wider else ()
            ways = Ways(heads, (*axioms.wider, *axioms.equal), is_meant=direct in axioms.meant)
        else:
            ways = Ways((), (direct,), is_meant=direct in axioms.transitive)
        if not ways.tails or ways.is_meant:
            return ways if ways.tails else None
        if direct not in self._acyclic and direct not in above:
            return None
        found, of = self._shortcuts(direct, ways.tails)
        is_never = never(np.array([found]), np.array([of]), MAX_SHORTCUTS)[0]
        return Ways(ways.heads, ways.tails, is_meant=False, shortcuts=(found, of)) if is_never else None

    def _shortcuts(self, direct: int, tails: tuple[int, ...]) -> tuple[int, int]:
        """Facts that follow from another fact of the same head, among those that could: their head leads further."""
        walk = self._closures
        head, tail = walk.pairs(direct)
        leads_on = np.isin(tail, np.concatenate([walk.pairs(r)[0] for r in tails]))
        could = np.flatnonzero(np.isin(head, head[leads_on]))
        if len(could) > LOOKED_AT:
            could = could[np.linspace(0, len(could) - 1, LOOKED_AT).astype(np.int64)]
        found = 0
        for start, end in zip(head[could].tolist(), tail[could].tolist(), strict=True):
            values = walk.ends(start, direct)
            others = values[values != end]
            found += len(others) > 0 and bool(walk.reach_from(others, *tails)[end])
        return found, len(could)
