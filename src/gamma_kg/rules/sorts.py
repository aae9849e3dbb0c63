"""Properties, classes and individuals of an ontology: an end of a relation where only one sort stands is for that sort.

Of many things a file does not say what they are: only what is known to be of another sort is kept out. N entities.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import inverse_of
from gamma_kg.rules.closure import Closures

BoolArray = NDArray[np.bool_]
# So many that stand at an end, all of one sort, show that it is for that sort; types and wider classes are classes.
MIN_SEEN = 10
KEPT_SLOTS = 64
PLURAL = {"a property": "properties", "a class": "classes", "an individual": "individuals"}


class Sorts:
    """Which entities are of which sort, and which ends of relations are for one sort only."""

    def __init__(self, kg: KnowledgeGraph, closures: Closures, types: list[int], wider: list[int]) -> None:
        """`types`, `wider`: relations by which a thing has a type, and a class a wider one."""
        self._closures = closures
        num = kg.num_relations
        self._for_classes = {*wider, *(inverse_of(r, num) for r in (*types, *wider))}
        self.others = lru_cache(maxsize=KEPT_SLOTS)(self._others)
        self.is_property = marked(kg, "property")
        self._of: dict[str, BoolArray] = {}
        is_class = marked(kg, "class")
        if is_class is not None:
            is_individual = np.zeros(kg.num_entities, dtype=bool)
            for relation in types:
                is_individual[closures.pairs(relation)[0]] = True
            is_individual &= ~is_class  # some classes have a type too
            if self.is_property is not None:
                is_individual &= ~self.is_property
            self._of = {"a class": is_class, "an individual": is_individual}

    def _others(self, slot: int) -> BoolArray | None:
        """Entities that are of another sort than all that stand in a slot, (N,); None if there are none to tell."""
        fillers = self._closures.pairs(slot)[0]
        if not len(fillers):
            return None
        found: BoolArray | None = None
        if self.is_property is not None:
            are_properties = self.is_property[fillers]
            if are_properties.all():
                return ~self.is_property
            found = None if are_properties.any() else self.is_property
        enough = slot in self._for_classes or len(fillers) >= MIN_SEEN
        for sort, members in self._of.items():
            if enough and members[fillers].all():
                others = [other for name, other in self._of.items() if name != sort]
                found = np.logical_or.reduce([*others, found] if found is not None else others)
        return found

    def between_properties(self, direct: int) -> bool:
        """Whether a relation holds between properties only."""
        if self.is_property is None:
            return False
        heads, tails = self._closures.pairs(direct)
        return bool(self.is_property[heads].all() and self.is_property[tails].all())

    def why_other(self, slot: int, entity: int) -> tuple[str, str] | None:
        """What an entity is, and what the slot is for; None if it is not out of place."""
        others = self.others(slot)
        if others is None or not others[entity]:
            return None
        known = {"a property": self.is_property, **self._of}
        own = next((sort for sort, members in known.items() if members is not None and members[entity]), "no property")
        fillers = self._closures.pairs(slot)[0]
        wanted = [PLURAL[sort] for sort, members in known.items() if members is not None and members[fillers].all()]
        return own, wanted[0] if wanted else "things"


def marked(kg: KnowledgeGraph, mark: str) -> BoolArray | None:
    """Entities of which an ontology says one word: that they are properties, say, (N,); None if there are none."""
    axioms = () if kg.report is None else kg.report.axioms
    found = [kg.entity_id(iri) for kind, iri, _ in axioms if kind == mark and iri in kg.entities]
    if not found:
        return None
    is_marked = np.zeros(kg.num_entities, dtype=bool)
    is_marked[found] = True
    return is_marked
