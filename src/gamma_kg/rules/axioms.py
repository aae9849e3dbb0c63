"""What an ontology says against a fact: kinds of properties, domain and range, disjoint classes, hierarchies by name.

Axioms come with the graph's report (`data/ontology.py`) by IRI. Some properties need none: whatever a file says,
`rdfs:subClassOf` has no cycles. Classes are followed over `rdf:type` and `rdfs:subClassOf`. N entities.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, inverse_of, is_inverse
from gamma_kg.rules.bounds import at_least
from gamma_kg.rules.closure import Closures

BoolArray = NDArray[np.bool_]
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
OBO = "http://purl.obolibrary.org/obo/"
SUBCLASS = RDFS + "subClassOf"
# Relations by which a thing has a type, and a type a wider one; IRIs, and the usual names where there are none.
TYPES = {RDF + "type", "rdf:type", "type", "a", "instance of", "instance_of", "P31", "is instance of"}
WIDER = {SUBCLASS, "rdfs:subClassOf", "subclass of", "subclass_of", "P279", "is a", "is_a", "isa", "hypernym"}
ACYCLIC = {SUBCLASS, RDFS + "subPropertyOf", SKOS + "broader", SKOS + "narrower"}
ACYCLIC |= {OBO + "BFO_0000050", OBO + "BFO_0000051"}
TRANSITIVE = {RDFS + "subPropertyOf", OBO + "BFO_0000050", OBO + "BFO_0000051"}
TRANSITIVE |= {SKOS + "broaderTransitive", SKOS + "narrowerTransitive"}
# By their definition, and not only by their name, these carry over to what is above.
MEANT = {SUBCLASS, "rdfs:subClassOf", RDF + "type", "rdf:type"}
# By name, in OBO files and tables: parts and wholes have no cycles as long as no fact closes one.
PARTS = {"part of", "part_of", "has part", "has_part", "partOf", "hasPart", "isPartOf"}
# An axiom counts against a candidate only where the graph keeps to it.
MIN_KEPT_TO = 0.9
MIN_FILLERS = 2


class Axioms:
    """The axioms of one graph by id, asked query by query."""

    def __init__(self, kg: KnowledgeGraph, closures: Closures) -> None:
        self._closures, self._num_relations = closures, kg.num_relations
        relation_ids = {kg.relations.identifier(r): r for r in range(kg.num_relations)}
        self.types = [r for name, r in relation_ids.items() if name in TYPES]
        self.wider = [r for name, r in relation_ids.items() if name in WIDER]
        self._up = (*self.types, *self.wider)
        self._down = tuple(inverse_of(r, kg.num_relations) for r in self._up)
        self.acyclic = {r for name, r in relation_ids.items() if name in ACYCLIC}
        self.parts = {r for name, r in relation_ids.items() if re.split("[#/]", name)[-1] in PARTS}
        self.kinds = declared_kinds(kg)
        self.meant = {r for name, r in relation_ids.items() if name in MEANT}
        self.transitive = {r for name, r in relation_ids.items() if name in TRANSITIVE}
        self.transitive |= self.kinds.get("transitive", set())
        self.ends: dict[int, int] = {}  # slot → class that its fillers belong to
        self.disjoint: dict[int, set[int]] = {}
        for kind, first, second in () if kg.report is None else kg.report.axioms:
            if kind in ("domain", "range"):
                if first in relation_ids and second in kg.entities:
                    slot = relation_ids[first]
                    slot = slot if kind == "domain" else inverse_of(slot, kg.num_relations)
                    self.ends.setdefault(slot, kg.entity_id(second))
            elif kind == "disjoint":
                if first in kg.entities and second in kg.entities:
                    a, b = kg.entity_id(first), kg.entity_id(second)
                    self.disjoint.setdefault(a, set()).add(b)
                    self.disjoint.setdefault(b, set()).add(a)
        self.is_blank = _blank(kg)
        self.members = lru_cache(maxsize=256)(self._members)
        self.excluded = lru_cache(maxsize=256)(self._excluded)

    def says(self, kind: str, relation: int) -> bool:
        """Whether a direct relation is declared `kind`."""
        return relation in self.kinds.get(kind, ())

    def against(self, slot: int) -> BoolArray | None:
        """Entities that domain or range keep out of a slot, (N,); None if nothing is said or kept to."""
        return self.excluded(slot) if slot in self.ends else None

    def disjoint_with(self, source: int, relation: int) -> BoolArray | None:
        """For a query about types or wider classes, from either end: candidates that would put something, the lower
        one or what is below it, under two classes that exclude each other, (N,)."""
        if not self.disjoint or direct_of(relation, self._num_relations) not in self._up:
            return None
        walk, is_read_back = self._closures, is_inverse(relation, self._num_relations)
        taken_along = np.array([source]) if is_read_back else np.flatnonzero(walk.reach(source, *self._down))
        above = np.flatnonzero(walk.reach_from(taken_along, *self._up)).tolist()
        excluding = {other for one in above for other in self.disjoint.get(one, ())}
        if not excluding:
            return None
        excluded = walk.reach_from(np.array(sorted(excluding)), *self._down)
        if is_read_back:
            excluded = walk.reach_from(np.flatnonzero(excluded), *self._up)
        # What a graph says already is no contradiction for us to find.
        return excluded & ~walk.reach(source, *(self._down if is_read_back else self._up))

    def are_disjoint(self, first: int, second: int, direct: int) -> bool:
        """Whether nothing can be under both classes, if the relation is one to a type or a wider class."""
        if not self.disjoint or direct not in self._up:
            return False
        above = (np.flatnonzero(self._closures.reach(one, *self._up)).tolist() for one in (first, second))
        over_first, over_second = (set(found) for found in above)
        return any(not over_second.isdisjoint(self.disjoint.get(one, ())) for one in over_first)

    def _members(self, type_: int) -> BoolArray:
        """A class, all below it, and all of these types, (N,)."""
        return self._closures.reach(type_, *self._down)

    def _excluded(self, slot: int) -> BoolArray:
        inside = self.members(self.ends[slot])
        is_typed = np.zeros_like(inside)
        for relation in (*self.types, *self.wider):
            is_typed[self._closures.pairs(relation)[0]] = True
        for relation in self.wider:  # a class at the top has no wider one
            is_typed[self._closures.pairs(relation)[1]] = True
        fillers = np.unique(self._closures.pairs(slot)[0])
        fillers = fillers[is_typed[fillers]]
        kept_to = int(inside[fillers].sum())
        if kept_to < MIN_FILLERS or not is_kept_to(kept_to, len(fillers)):
            return np.zeros_like(inside)
        return is_typed & ~inside


def is_kept_to(count: int, of: int) -> bool:
    """Whether the graph keeps to what is declared: without an exception, or with few for certain."""
    return count == of or float(at_least(count, of)) >= MIN_KEPT_TO


def declared_kinds(kg: KnowledgeGraph) -> dict[str, set[int]]:
    """Kinds of properties (asymmetric, functional …) that an ontology declares, with the direct relations of each."""
    axioms = () if kg.report is None else kg.report.axioms
    relation_ids = {kg.relations.identifier(r): r for r in range(kg.num_relations)} if axioms else {}
    kinds: dict[str, set[int]] = {}
    for kind, first, _ in axioms:
        if kind not in ("domain", "range", "disjoint") and first in relation_ids:
            kinds.setdefault(kind, set()).add(relation_ids[first])
    return kinds


def _blank(kg: KnowledgeGraph) -> BoolArray | None:
    """Entities that are blank nodes, (N,); None if names are plain or there are none."""
    if not kg.entities.has_terms:
        return None
    identifiers = chain.from_iterable(kg.entities.identifier_batches())
    blank = np.fromiter((name.startswith("_:") for name in identifiers), dtype=bool, count=kg.num_entities)
    return blank if blank.any() else None
