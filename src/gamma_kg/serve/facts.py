"""What a graph says of one entity or relation: its facts, how many, and what kind of thing it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.explain.neighbourhood_picture import FactGroup
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, inverse_of, is_inverse
from gamma_kg.graph.type_relations import says_type

ENTITIES_AT_ONCE = 1 << 20
HEAD_OF, TAIL_OF = "head of ", "tail of "


@dataclass(frozen=True)
class EntityFact:
    """A fact with this entity at one end; `is_head` if it is the head."""

    head: str
    relation: str
    tail: str
    is_head: bool


def degrees(kg: KnowledgeGraph) -> Tensor:
    """Facts of every entity, at either end, int64 [N]."""
    edges = kg.edges
    return edges.group_ptr[edges.node_ptr].diff()


def best_connected(kg: KnowledgeGraph, count: int) -> list[int]:
    """Entities with the most facts, a part of the graph at a time: a store may be larger than memory."""
    edges = kg.edges
    best, most = torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long)
    for first in range(0, kg.num_entities, ENTITIES_AT_ONCE):
        here = edges.group_ptr[edges.node_ptr[first : first + ENTITIES_AT_ONCE + 1]].diff()
        top = here.topk(min(count, len(here)))
        best, most = torch.cat((best, top.indices + first)), torch.cat((most, top.values))
        kept = most.argsort(descending=True, stable=True)[:count]
        best, most = best[kept], most[kept]
    return best.tolist()


def degree(kg: KnowledgeGraph, entity: int) -> int:
    first, last = _edges_of(kg, entity)
    return last - first


def groups_of(kg: KnowledgeGraph, entity: int, shown: int) -> list[FactGroup]:
    """The entity's facts by relation and end, with at most `shown` names each; relations in their own order."""
    edges = kg.edges
    found = []
    for group in range(int(edges.node_ptr[entity]), int(edges.node_ptr[entity + 1])):
        first, last = int(edges.group_ptr[group]), int(edges.group_ptr[group + 1])
        if first == last:
            continue
        kind = int(edges.group_type[group])
        others = edges.neighbour[first : min(last, first + shown)].tolist()
        is_head = not is_inverse(kind, kg.num_relations)
        relation = kg.relations[direct_of(kind, kg.num_relations)]
        found.append(FactGroup(relation, is_head, last - first, tuple(kg.entities[i] for i in others)))
    return found


def facts_of(kg: KnowledgeGraph, entity: int, offset: int, limit: int) -> list[EntityFact]:
    """A page of the entity's facts, those with it as head first."""
    edges = kg.edges
    first, last = _edges_of(kg, entity)
    name = kg.entities[entity]
    found = []
    groups = range(int(edges.node_ptr[entity]), int(edges.node_ptr[entity + 1]))
    for group in groups:
        low, high = int(edges.group_ptr[group]), int(edges.group_ptr[group + 1])
        low, high = max(low, first + offset), min(high, first + offset + limit, last)
        if low >= high:
            continue
        kind = int(edges.group_type[group])
        is_head = not is_inverse(kind, kg.num_relations)
        relation = kg.relations[direct_of(kind, kg.num_relations)]
        for other in edges.neighbour[low:high].tolist():
            ends = (name, kg.entities[other]) if is_head else (kg.entities[other], name)
            found.append(EntityFact(ends[0], relation, ends[1], is_head))
    return found


class Types:
    """What kind of thing an entity is: what the graph's type relations say, else the roles it plays in relations."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = kg
        self.relations = [r for r in range(kg.num_relations) if says_type(kg.relations, r)]

    def of(self, entity: int, limit: int = 3) -> list[str]:
        """Names of types, else roles such as 'head of capital of'."""
        kg = self._kg
        said = [kg.entities[int(t)] for r in self.relations for t in kg.answers(entity, r)[:limit]]
        return said[:limit] if said else self.roles(entity)[:limit]

    def roles(self, entity: int) -> list[str]:
        """What it is a head of, then what it is a tail of, each in the order of the relations."""
        edges = self._kg.edges
        kinds = edges.group_type[int(edges.node_ptr[entity]) : int(edges.node_ptr[entity + 1])]
        return [self._role(kind) for kind in kinds.tolist()]

    @cached_property
    def known(self) -> list[str]:
        """Types that a question can be narrowed to: all roles, and the commonest types that the graph names."""
        kg = self._kg
        named: list[str] = []
        for relation in self.relations:
            tails, counts = torch.unique(self._ends(relation, 2), return_counts=True)
            named += [kg.entities[int(tails[i])] for i in counts.argsort(descending=True)[:100]]
        return [*dict.fromkeys(named), *(self._role(kind) for kind in range(kg.num_types))]

    def members(self, type_name: str) -> Tensor:
        """Which entities are of this type or play this role, bool [N]; an unknown name is an `UnknownNameError`."""
        kg = self._kg
        mask = torch.zeros(kg.num_entities, dtype=torch.bool)
        for prefix, column in ((HEAD_OF, 0), (TAIL_OF, 2)):
            if type_name.startswith(prefix) and type_name not in kg.entities:
                mask[self._ends(kg.relation_id(type_name.removeprefix(prefix)), column)] = True
                return mask
        entity = kg.entity_id(type_name)
        for relation in self.relations:
            mask[kg.answers(entity, inverse_of(relation, kg.num_relations))] = True
        return mask

    def _ends(self, relation: int, column: int) -> Tensor:
        """Heads (column 0) or tails (2) of a relation's facts."""
        blocks = [block[block[:, 1] == relation, column] for block in self._kg.triple_blocks()]
        return torch.cat(blocks) if blocks else torch.empty(0, dtype=torch.long)

    def _role(self, kind: int) -> str:
        num = self._kg.num_relations
        return (TAIL_OF if is_inverse(kind, num) else HEAD_OF) + self._kg.relations[direct_of(kind, num)]


def relation_counts(kg: KnowledgeGraph) -> NDArray[np.int64]:
    """Facts of every relation, int64 [R]."""
    edges = kg.edges
    counts = torch.zeros(kg.num_types, dtype=torch.long)
    counts.index_add_(0, edges.group_type.long(), edges.group_ptr.diff())
    return counts[: kg.num_relations].numpy()


def _edges_of(kg: KnowledgeGraph, entity: int) -> tuple[int, int]:
    edges = kg.edges
    first, last = edges.group_ptr[edges.node_ptr[entity : entity + 2]].tolist()
    return first, last
