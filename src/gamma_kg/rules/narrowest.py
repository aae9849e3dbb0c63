"""Values of which one is inside the other: a country lies in a region and in the continent around it, and in no second
region.

Where a relation leads on from its values (a region lies in a continent), a thing may have several values and still only
one place: that of its narrowest value, that no other of its values is inside of. Where few things have two of these, no
second one is proposed; what is inside the narrowest value, or around it, may be.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gamma_kg.rules.bounds import at_most
from gamma_kg.rules.closure import Closures

LOOKED_AT = 300  # things of each relation
# Of those that have a value, so few may have two narrowest ones, for certain.
MAX_SEVERAL = 0.1
Seen = tuple[int, int]


class Narrowest:
    """Asked fact by fact."""

    def __init__(self, closures: Closures) -> None:
        self._closures = closures
        self.seen = lru_cache(maxsize=None)(self._seen)

    def would_be_second(self, head: int, direct: int, tail: int) -> bool:
        """Whether a fact gives its head a second narrowest value, where few have two."""
        values = set(self._closures.ends(head, direct).tolist()) - {head, tail}
        if not values:
            return False
        several, of = self.seen(direct)
        if not of or float(at_most(several, of)) > MAX_SEVERAL:
            return False
        own = self._narrowest(values, direct)
        return len(own) == 1 and len(self._narrowest(own | {tail}, direct)) == 2

    def _seen(self, direct: int) -> Seen:
        """How many things have several narrowest values, among those with a value that leads on; none of these where
        values lead round in circles."""
        heads, tails = self._closures.pairs(direct)
        leading = np.unique(heads[np.isin(tails, heads) & (heads != tails)])
        rows = np.unique(np.linspace(0, len(leading) - 1, min(len(leading), LOOKED_AT)).astype(np.int64))
        several = 0
        for head in leading[rows].tolist():
            if self._closures.reach_from(self._closures.ends(head, direct), direct)[head]:
                return 0, 0
            several += len(self._narrowest(set(self._closures.ends(head, direct).tolist()), direct)) > 1
        return several, len(rows)

    def _narrowest(self, values: set[int], direct: int) -> set[int]:
        """Those that no other one leads on to."""
        nodes = np.array(sorted(values), dtype=np.int64)
        place, reached = self._closures.reach_of_each(nodes, direct)
        return values - {int(end) for at, end in zip(place, reached, strict=True) if end != nodes[at]}
