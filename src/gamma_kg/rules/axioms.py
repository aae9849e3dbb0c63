"""What an ontology says against a fact: kinds of properties, domain and range, disjoint classes, hierarchies by name.

Axioms come with the graph's report (`data/ontology.py`) by IRI. Some properties need none: whatever a file says,
`rdfs:subClassOf` has no cycles. Classes are followed over `rdf:type` and `rdfs:subClassOf`. N entities.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, inverse_of, is_inverse
from gamma_kg.rules.apart import Shared, classes_apart
from gamma_kg.rules.bounds import at_least
from gamma_kg.rules.closure import Closures
from gamma_kg.rules.sorts import Sorts, marked

BoolArray = NDArray[np.bool_]
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
OBO = "http://purl.obolibrary.org/obo/"
SUBCLASS = RDFS + "subClassOf"
# Relations by which a thing has a type, and a type a wider one; IRIs, and the usual names where there are none.
TYPES = {RDF + "type", "rdf:type", "type", "a", "instance of", "is instance of", "instance hypernym", "P31"}
WIDER = {SUBCLASS, "rdfs:subClassOf", "subclass of", "sub class of", "is a", "isa", "hypernym", "P279"}
ACYCLIC = {SUBCLASS, RDFS + "subPropertyOf", SKOS + "broader", SKOS + "narrower"}
ACYCLIC |= {OBO + "BFO_0000050", OBO + "BFO_0000051"}
TRANSITIVE = {RDFS + "subPropertyOf", OBO + "BFO_0000050", OBO + "BFO_0000051"}
TRANSITIVE |= {SKOS + "broaderTransitive", SKOS + "narrowerTransitive"}
EQUAL = "http://www.w3.org/2002/07/owl#equivalentClass"
# By their definition, and not only by their name, these carry over to what is above.
MEANT = {SUBCLASS, "rdfs:subClassOf", RDF + "type", "rdf:type"}
# By name, in OBO files and tables: parts and wholes have no cycles as long as no fact closes one.
PARTS = {"part of", "part_of", "has part", "has_part", "partOf", "hasPart", "isPartOf"}
# An axiom counts against a candidate only where the graph keeps to it.
MIN_KEPT_TO = 0.9


class Axioms:
    """The axioms of one graph by id, asked query by query."""

    def __init__(self, kg: KnowledgeGraph, closures: Closures) -> None:
        self._closures, self._num_relations = closures, kg.num_relations
        relation_ids = {kg.relations.identifier(r): r for r in range(kg.num_relations)}
        self.types = [r for name, r in relation_ids.items() if not TYPES.isdisjoint((name, in_words(name)))]
        self.wider = [r for name, r in relation_ids.items() if not WIDER.isdisjoint((name, in_words(name)))]
        self.up = (*self.types, *self.wider)
        self._down = tuple(inverse_of(r, kg.num_relations) for r in self.up)
        equal = [r for name, r in relation_ids.items() if name == EQUAL]
        self.equal = (*equal, *(inverse_of(r, kg.num_relations) for r in equal))  # both ways round
        self.acyclic = {r for name, r in relation_ids.items() if name in ACYCLIC}
        self.parts = {r for name, r in relation_ids.items() if re.split("[#/]", name)[-1] in PARTS}
        self.kinds = declared_kinds(kg)
        self.meant = {r for name, r in relation_ids.items() if name in MEANT}
        self.transitive = {r for name, r in relation_ids.items() if name in TRANSITIVE}
        self.transitive |= self.kinds.get("transitive", set())
        self.ends: dict[int, int] = {}  # slot → class that its fillers belong to
        self._declared_disjoint: dict[int, set[int]] = {}
        for kind, first, second in () if kg.report is None else kg.report.axioms:
            if kind in ("domain", "range"):
                if first in relation_ids and second in kg.entities:
                    slot = relation_ids[first]
                    slot = slot if kind == "domain" else inverse_of(slot, kg.num_relations)
                    self.ends.setdefault(slot, kg.entity_id(second))
            elif kind == "disjoint":
                if first in kg.entities and second in kg.entities:
                    a, b = kg.entity_id(first), kg.entity_id(second)
                    self._declared_disjoint.setdefault(a, set()).add(b)
                    self._declared_disjoint.setdefault(b, set()).add(a)
        self.is_blank = _blank(kg)
        self.sorts = Sorts(kg, closures, self.types, self.wider)
        self.is_defined = marked(kg, "defined")
        self.is_outside = marked(kg, "outside")
        if self.is_outside is not None:  # things without a declaration of which facts are told are the graph's own
            for relation in range(kg.num_relations):
                self.is_outside[closures.pairs(relation)[0]] = False
        self.members = lru_cache(maxsize=256)(self._members)
        self.excluded = lru_cache(maxsize=256)(self._excluded)

    @cached_property
    def apart(self) -> dict[tuple[int, int], Shared]:
        """Classes that have nothing in common by the facts, though nobody declares it."""
        return classes_apart(self._closures, self._down)

    @cached_property
    def _kept_apart(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for one, other in self.apart:
            found.setdefault(one, set()).add(other)
        return found

    @cached_property
    def disjoint(self) -> dict[int, set[int]]:
        """Classes that exclude each class, by declaration and by the facts."""
        parts = (self._declared_disjoint, self._kept_apart)
        return {one: set().union(*(part.get(one, ()) for part in parts)) for one in set().union(*parts)}

    @cached_property
    def is_placed(self) -> BoolArray:
        """Entities that have a type or a wider class, or are one, (N,)."""
        found = np.zeros(self._closures.num_entities, dtype=bool)
        for relation in self.up:
            for ends in self._closures.pairs(relation):
                found[ends] = True
        return found

    def line(self, entity: int) -> BoolArray:
        """All that is above an entity and all that is below it, (N,)."""
        found = self._closures.reach(entity, *self.up) | self._closures.reach(entity, *self._down)
        found[entity] = False
        return found

    def says(self, kind: str, relation: int) -> bool:
        """Whether a direct relation is declared `kind`."""
        return relation in self.kinds.get(kind, ())

    def against(self, slot: int) -> BoolArray | None:
        """Entities that domain or range keep out of a slot, (N,); None if nothing is said or kept to."""
        return self.excluded(slot) if slot in self.ends else None

    def disjoint_with(self, source: int, relation: int) -> BoolArray | None:
        """For a query about types or wider classes, from either end: candidates that would put something, the lower
        one or what is below it, under two classes that exclude each other, (N,)."""
        if direct_of(relation, self._num_relations) not in self.up or not self.disjoint:
            return None
        walk, is_read_back = self._closures, is_inverse(relation, self._num_relations)
        over = np.flatnonzero(walk.reach(source, *self.up)).tolist()
        apart = {other for one in over for other in self._kept_apart.get(one, ())}
        excluded = walk.reach_from(np.array(sorted(apart), dtype=np.int64), *self._down)
        # What is declared counts for all that is below the lower one too: it would come under the answer.
        if self._declared_disjoint and not is_read_back:
            over = np.flatnonzero(walk.reach_from(np.flatnonzero(walk.reach(source, *self._down)), *self.up)).tolist()
        declared = {other for one in over for other in self._declared_disjoint.get(one, ())}
        if declared:
            below = walk.reach_from(np.array(sorted(declared), dtype=np.int64), *self._down)
            excluded |= walk.reach_from(np.flatnonzero(below), *self.up) if is_read_back else below
        # What a graph says already is no contradiction for us to find.
        return excluded & ~walk.reach(source, *(self._down if is_read_back else self.up))

    def are_disjoint(self, first: int, second: int, direct: int) -> bool:
        """Whether nothing can be under both classes, if the relation is one to a type or a wider class."""
        if direct not in self.up or not self.disjoint:
            return False
        above = (np.flatnonzero(self._closures.reach(one, *self.up)).tolist() for one in (first, second))
        over_first, over_second = (set(found) for found in above)
        return any(not over_second.isdisjoint(self.disjoint.get(one, ())) for one in over_first)

    def excluding_classes(self, head: int, tail: int) -> tuple[int, int] | None:
        """Two classes with nothing in common, the one above the head and the other above the tail."""
        over_tail = self._closures.reach(tail, *self.up)
        for one in np.flatnonzero(self._closures.reach(head, *self.up)).tolist():
            for other in sorted(self._kept_apart.get(one, ())):
                if over_tail[other]:
                    return one, other
        return None

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
        if not kept_to or not is_kept_to(kept_to, len(fillers)):
            return np.zeros_like(inside)
        return is_typed & ~inside


def in_words(name: str) -> str:
    """`_instance_hypernym`, `InstanceOf` and `instance_of` as words; IRIs and codes as they are."""
    if "://" in name or not name.strip("_")[1:2].islower():
        return name
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", name).strip().lower()


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
