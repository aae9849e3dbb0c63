"""Graphs made of another graph: with further facts, without some, or a part of it. Names and their ids stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.vocabulary import Names, Vocabulary
from gamma_kg.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from gamma_kg.graph.graph import KnowledgeGraph

Fact = tuple[str, str, str]
IntArray = NDArray[np.int64]


def fact_ids(kg: KnowledgeGraph, fact: Sequence[str]) -> tuple[int, int, int]:
    """The ids of a fact given by names."""
    if isinstance(fact, str) or len(fact) != 3:
        raise DataError(f"expected a fact (head, relation, tail), got {fact!r}")
    return kg.entity_id(fact[0]), kg.relation_id(fact[1]), kg.entity_id(fact[2])


def holds(kg: KnowledgeGraph, fact: Sequence[str]) -> bool:
    """Whether the graph has this fact; a fact with an unknown name it does not have."""
    try:
        head, relation, tail = fact_ids(kg, fact)
    except UnknownNameError:
        return False
    return bool((kg.answers(head, relation) == tail).any())


def with_facts(kg: KnowledgeGraph, facts: Iterable[Fact]) -> tuple[IntArray, Vocabulary, Vocabulary]:
    """Triples and vocabularies of the graph and further facts; new names come after the known ones."""
    entities, relations = _Growing(kg.entities), _Growing(kg.relations)
    added = []
    for fact in facts:
        if isinstance(fact, str) or len(fact) != 3 or not all(isinstance(name, str) and name for name in fact):
            raise DataError(f"expected a fact (head, relation, tail), got {fact!r}")
        added.append((entities.id(fact[0]), relations.id(fact[1]), entities.id(fact[2])))
    new = np.array(added, dtype=np.int64).reshape(-1, 3)
    return np.concatenate([kg.triples.numpy(), new]), entities.vocabulary(), relations.vocabulary()


def without_facts(kg: KnowledgeGraph, facts: Iterable[Fact]) -> IntArray:
    """The triples that are none of these facts; a fact that the graph does not hold is an error."""
    gone = set()
    for fact in facts:
        if not holds(kg, fact):
            raise DataError(f"the graph does not hold the fact {fact!r}")
        gone.add(fact_ids(kg, fact))
    triples = kg.triples.numpy()
    return triples[[tuple(triple) not in gone for triple in triples.tolist()]]


def part_of(
    kg: KnowledgeGraph, entities: Iterable[str] | None, relations: Iterable[str] | None, hops: int
) -> tuple[IntArray, Vocabulary, Vocabulary]:
    """Facts of these relations between these entities and what lies up to `hops` facts from them; ids are new."""
    triples = kg.triples.numpy()
    if relations is not None:
        triples = triples[np.isin(triples[:, 1], [kg.relation_id(name) for name in relations])]
    if entities is not None:
        inside = np.zeros(kg.num_entities, dtype=bool)
        inside[[kg.entity_id(name) for name in entities]] = True
        for _ in range(hops):
            touched = triples[inside[triples[:, 0]] | inside[triples[:, 2]]]
            inside[touched[:, [0, 2]]] = True
        triples = triples[inside[triples[:, 0]] & inside[triples[:, 2]]]
    if not len(triples):
        raise DataError("no fact of the graph lies in the part asked for")
    entity, ends = np.unique(triples[:, [0, 2]], return_inverse=True)
    relation, kinds = np.unique(triples[:, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    renumbered = np.column_stack((ends[:, 0], kinds.reshape(-1), ends[:, 1])).astype(np.int64)
    return renumbered, selected(kg.entities, entity.tolist()), selected(kg.relations, relation.tolist())


def selected(names: Names, ids: Sequence[int]) -> Vocabulary:
    """The names of some ids, in this order, with all that they are called."""
    place = {index: at for at, index in enumerate(ids)}
    further = names.further_names() if isinstance(names, Vocabulary) else ()
    return Vocabulary(
        [names[index] for index in ids],
        names.kind,
        identifiers=[names.identifier(index) for index in ids] if names.has_terms else None,
        alternatives=[(place[index], name) for index, name in further if index in place],
    )


class _Growing:
    """A vocabulary to which names can be added."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._new: dict[str, int] = {}

    def id(self, name: str) -> int:
        """The id of a known name as it is written, else a new one."""
        if name in self._new:
            return self._new[name]
        try:
            return self._names.id(name, exact=True)
        except UnknownNameError:
            return self._new.setdefault(name, len(self._names) + len(self._new))

    def vocabulary(self) -> Vocabulary:
        names, new = self._names, list(self._new)
        if not new and isinstance(names, Vocabulary):
            return names
        old = range(len(names))
        return Vocabulary(
            [*names, *new],
            names.kind,
            identifiers=[*(names.identifier(i) for i in old), *new] if names.has_terms else None,
            alternatives=list(names.further_names()) if isinstance(names, Vocabulary) else (),
        )
