"""Batches: queries of a graph, their candidates, and the graph less the edges that would give the answers away.

B queries, C candidates, N entities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.inverse import inverse_of
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.graph.linked import linked_without
from gamma_kg.graph.relation_pairs import relation_graph_of_kind
from gamma_kg.graph.sampling import BoolArray, IntArray, Subgraph, strict_negatives

# Facts looked at for each that is asked for, where not every fact will do.
LOOKED_AT = 8


@dataclass(frozen=True, eq=False)
class PreparedGraph:
    """A graph to train on. `known` also has the facts that are hidden from the graph."""

    triples: IntArray
    edges: Edges
    relation_graph: Edges
    known: KnownAnswers
    num_entities: int
    num_relations: int
    whole: PreparedGraph | None = None  # what this is a part of, where a teacher looks at that
    entity: IntArray | None = None  # the id of each entity there

    @classmethod
    def build(
        cls,
        triples: IntArray,
        num_entities: int,
        num_relations: int,
        hidden: IntArray | None = None,
        relation_graph: str = "meetings",
    ) -> PreparedGraph:
        edges = Edges.of_triples(triples, num_entities, num_relations)
        known = _known(triples, hidden, num_entities, num_relations)
        return cls(triples, edges, relation_graph_of_kind(edges, relation_graph), known, num_entities, num_relations)

    def part(self, subgraph: Subgraph, with_whole: bool = False) -> PreparedGraph:
        """A subgraph of this graph whose relations, and the graph of them, stay those of the whole."""
        triples, hidden = (
            np.column_stack((facts[:, 0], subgraph.relation[facts[:, 1]], facts[:, 2]))
            for facts in (subgraph.triples, subgraph.hidden)
        )
        return replace(
            self,
            triples=triples,
            edges=Edges.of_triples(triples, subgraph.num_entities, self.num_relations),
            known=_known(triples, hidden, subgraph.num_entities, self.num_relations),
            num_entities=subgraph.num_entities,
            whole=self if with_whole else None,
            entity=subgraph.entity if with_whole else None,
        )


@dataclass(frozen=True, eq=False)
class Batch:
    """What one forward pass needs. Candidates are all entities where `candidate_BC` is None.

    The last three are the same queries on the whole graph that `edges` are a part of, for teachers that see it.
    """

    edges: Edges
    relation_graph: Edges
    source_B: Tensor
    relation_B: Tensor
    candidate_BC: Tensor | None
    right_BC: Tensor
    wrong_BC: Tensor
    whole_edges: Edges | None = None
    whole_source_B: Tensor | None = None
    whole_candidate_BC: Tensor | None = None

    def __len__(self) -> int:
        return len(self.source_B)

    def part(self, start: int, stop: int) -> Batch:
        """Some of the queries, on the same graph less the edges of all of them."""
        rows: dict[str, Any] = {
            name: value[start:stop] for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **rows)

    def to(self, device: torch.device) -> Batch:
        fields = {name: value.to(device) for name, value in vars(self).items() if value is not None}
        return replace(self, **fields)

    def tensors(self) -> dict[str, Tensor]:
        """Everything as plain tensors, to be saved for study."""
        found = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        for name, edges in (("edges", self.edges), ("relation_graph", self.relation_graph)):
            found |= {f"{name}.{key}": value for key, value in vars(edges).items() if isinstance(value, Tensor)}
        return found


def make_batch(
    graph: PreparedGraph,
    size: int,
    negatives: int | str,
    max_answers: int,
    rng: np.random.Generator,
    asked_about: IntArray | None = None,
    near: int | None = None,
) -> Batch:
    """Random facts as queries, the first half asking for tails, the others for heads; their edges are removed.

    Where some entities are `asked_about`, all queries start at them, and ask in whichever direction that gives.
    Otherwise only facts are asked for whose ends other facts link, too, by at most `near` steps, if there are such.
    """
    asks_head = np.arange(size) >= (size + 1) // 2
    if asked_about is None:
        drawn = _drawn(graph, size, near, rng)
    else:
        row, end = np.nonzero(np.isin(graph.triples[:, [0, 2]], asked_about))
        chosen = rng.choice(len(row), size=size, replace=len(row) < size)
        drawn, asks_head = row[chosen], end[chosen] == 1
    head, relation, tail = graph.triples[drawn].T
    source = np.where(asks_head, tail, head)
    asked = np.where(asks_head, inverse_of(relation, graph.num_relations), relation)
    answer = np.where(asks_head, head, tail)

    owner, known = graph.known.of(source, asked)
    # Further answers of the same query that are taken out with the drawn one; an even chance for every number.
    taken = known == answer[owner]
    if max_answers > 1:
        more = rng.integers(0, max_answers, size=size)
        taken |= _place_in_group(rng.random(len(owner)), owner) < more[owner]
    edges = _without(graph, source[owner[taken]], asked[owner[taken]], known[taken])
    # Right is what the model can't read off the graph: taken out now, or hidden from the start.
    facts = (torch.from_numpy(ids) for ids in (source[owner], asked[owner], known))
    is_right = ~edges.has(*facts).numpy()

    if negatives == "all":
        candidate, right, wrong = _all_entities(size, graph.num_entities, owner, known, is_right)
    else:
        candidate, right, wrong = _some_entities(
            graph.num_entities, answer, owner, known, is_right, int(negatives), max_answers, rng
        )
    batch = Batch(
        edges,
        graph.relation_graph,
        torch.from_numpy(source),
        torch.from_numpy(asked),
        None if candidate is None else torch.from_numpy(candidate),
        torch.from_numpy(right),
        torch.from_numpy(wrong),
    )
    if graph.whole is None or graph.entity is None:
        return batch
    # Nobody may read an answer off the whole graph that is hidden here.
    asked_about, hidden = owner[is_right], known[is_right]
    entity = graph.entity
    return replace(
        batch,
        whole_edges=_without(graph.whole, entity[source[asked_about]], asked[asked_about], entity[hidden]),
        whole_source_B=torch.from_numpy(entity[source]),
        whole_candidate_BC=torch.from_numpy(np.tile(entity, (size, 1)) if candidate is None else entity[candidate]),
    )


def _drawn(graph: PreparedGraph, size: int, near: int | None, rng: np.random.Generator) -> IntArray:
    """Which facts are asked for."""
    if near is None:
        return rng.choice(len(graph.triples), size=size, replace=len(graph.triples) < size)
    looked_at = rng.permutation(len(graph.triples))[: LOOKED_AT * size]
    is_linked = linked_without(graph.edges, graph.triples[looked_at], near)
    # Where too few are linked these are asked for twice, in whichever direction their places say.
    chosen = looked_at[is_linked] if is_linked.any() else looked_at
    return np.resize(chosen, size)


def _known(triples: IntArray, hidden: IntArray | None, num_entities: int, num_relations: int) -> KnownAnswers:
    facts = triples if hidden is None else np.concatenate((triples, hidden))
    return KnownAnswers.build(facts, num_entities, num_relations)


Candidates = tuple[IntArray | None, BoolArray, BoolArray]


def _all_entities(size: int, num_entities: int, owner: IntArray, known: IntArray, is_right: BoolArray) -> Candidates:
    right = np.zeros((size, num_entities), dtype=bool)
    wrong = np.ones((size, num_entities), dtype=bool)
    wrong[owner, known] = False
    right[owner[is_right], known[is_right]] = True
    return None, right, wrong


def _some_entities(
    num_entities: int,
    answer: IntArray,
    owner: IntArray,
    known: IntArray,
    is_right: BoolArray,
    negatives: int,
    max_answers: int,
    rng: np.random.Generator,
) -> Candidates:
    """The drawn answer first, then up to max_answers − 1 other right ones, then the negatives."""
    size = len(answer)
    wrong_entity, has_wrong = strict_negatives(owner, known, size, num_entities, negatives, rng)
    candidate = np.concatenate((np.repeat(answer[:, None], max_answers, axis=1), wrong_entity), axis=1)
    right = np.zeros(candidate.shape, dtype=bool)
    wrong = np.zeros(candidate.shape, dtype=bool)
    right[:, 0] = True
    wrong[:, max_answers:] = has_wrong[:, None]
    if max_answers > 1:
        other = is_right & (known != answer[owner])
        row, entity = owner[other], known[other]
        column = 1 + _place_in_group(rng.random(len(row)), row)
        fits = column < max_answers
        candidate[row[fits], column[fits]] = entity[fits]
        right[row[fits], column[fits]] = True
    return candidate, right, wrong


def _place_in_group(value: np.ndarray, group: IntArray) -> IntArray:
    """Position of each value among those of its group, smallest first; groups come sorted."""
    order = np.lexsort((value, group))
    first = np.searchsorted(group, group)
    place = np.empty(len(value), dtype=np.int64)
    place[order] = np.arange(len(value))
    return place - first


def _without(graph: PreparedGraph, source: IntArray, asked: IntArray, answer: IntArray) -> Edges:
    """The graph less these edges and their inverses."""
    inverse = inverse_of(asked, graph.num_relations)
    node, neighbour = np.concatenate((source, answer)), np.concatenate((answer, source))
    kind = np.concatenate((asked, inverse))
    positions = graph.edges.find(torch.from_numpy(node), torch.from_numpy(kind), torch.from_numpy(neighbour))
    return graph.edges.without(positions)
