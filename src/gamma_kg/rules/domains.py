"""Domains and ranges that nobody declares: the class that all who stand at one end of a relation are under.

N entities; a slot is an end of a relation (`rules/slots.py`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gamma_kg.rules.axioms import Axioms
from gamma_kg.rules.bounds import at_most
from gamma_kg.rules.closure import Closures

BoolArray = NDArray[np.bool_]
LOOKED_AT = 300
# How many of a slot's fillers may be outside, at most and for certain: 25 inside and none outside are enough.
MAX_OUTSIDE = 0.1
# A class that holds more than this share of all that have a place in the hierarchy says little.
MAX_SHARE = 0.7
KEPT_SLOTS = 64


class Domains:
    """Found slot by slot."""

    def __init__(self, closures: Closures, axioms: Axioms) -> None:
        self._closures, self._axioms = closures, axioms
        self.outside = lru_cache(maxsize=KEPT_SLOTS)(self._outside)

    def _outside(self, slot: int) -> BoolArray | None:
        """Entities that have their place elsewhere than all who fill the slot, (N,); None if these have no class."""
        domain = self.of(slot)
        if domain is None:
            return None
        outside = self._axioms.is_placed & ~self._axioms.members(domain)
        outside[self._closures.pairs(slot)[0]] = False
        return outside

    def of(self, slot: int) -> int | None:
        """The smallest class that next to all fillers of a slot are under."""
        up, is_placed = self._axioms.up, self._axioms.is_placed
        fillers = np.unique(self._closures.pairs(slot)[0])
        fillers = fillers[is_placed[fillers]]
        if not len(fillers) or float(at_most(0, len(fillers))) > MAX_OUTSIDE:
            return None
        rows = np.unique(np.linspace(0, len(fillers) - 1, min(len(fillers), LOOKED_AT)).astype(np.int64))
        _, above = self._closures.reach_of_each(fillers[rows], *up)
        classes, counts = np.unique(above, return_counts=True)
        most = MAX_SHARE * int(is_placed.sum())
        found: tuple[int, int] | None = None
        for class_ in classes[at_most(len(rows) - counts, len(rows)) <= MAX_OUTSIDE].tolist():
            size = int(self._axioms.members(class_).sum())
            if size <= most and (found is None or (size, class_) < found):
                found = size, class_
        return None if found is None else found[1]
