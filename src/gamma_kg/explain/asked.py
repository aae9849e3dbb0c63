"""One query on one graph, asked again and again with facts taken out.

The fact in question is taken out from the start, in both directions: the question is what else speaks for it. The graph
of relations stays as it is. N entities, E edges, T layers, K branches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import NonFiniteScoreError
from gamma_kg.explain.gradients import edge_gradients
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.nn.model import GammaModel, RelationStates

Triple = tuple[int, int, int]


class Standing(NamedTuple):
    """How an answer stands: its score, its share among the candidates that are not known, and its rank there."""

    score: float
    share: float
    rank: int


class Asked:
    """The query (head, relation, ?) and the answer in question, with the edges it is computed on."""

    def __init__(
        self,
        model: GammaModel,
        kg: KnowledgeGraph,
        fact: Triple,
        gone: Iterable[Triple] = (),
        rivals_less: Tensor | None = None,
    ) -> None:
        self._model, self._kg, self.fact = model, kg, fact
        self.edges = self._less(kg.edges, [fact, *gone])
        with torch.no_grad():
            relation_B = torch.tensor([fact[1]])
            relation_graph = kg.relation_graph_as(model.config.relation_graph)
            self.relations: RelationStates = model.relation_states(relation_graph, kg.edges.inverse, relation_B)
        self._rival_N = torch.ones(kg.num_entities, dtype=torch.bool)
        self._rival_N[kg.answers(fact[0], fact[1])] = False
        if rivals_less is not None:
            self._rival_N[rivals_less] = False
        self._rival_N[fact[2]] = True
        score_N, weight_NK = self._scores(self.edges)
        self.standing = self._standing(score_N)
        num = model.config.num_branches
        self.branch_weights = [1 / num] * num if weight_NK is None else weight_NK[fact[2]].tolist()

    def without(self, triples: Iterable[Triple]) -> Standing:
        """How the answer stands when these facts are gone too."""
        return self._standing(self._scores(self._less(self.edges, list(triples)))[0])

    def with_only(self, triples: Iterable[Triple]) -> Standing:
        """How the answer stands when these facts are all there is."""
        rest = torch.ones(self.edges.num_edges, dtype=torch.bool)
        rest[self._positions(self.edges, list(triples))] = False
        return self._standing(self._scores(self.edges.without(rest.nonzero()[:, 0]))[0])

    def gradients(self) -> Tensor:
        """Of the answer's score, for a weight on each edge in each layer, (T, E)."""
        return edge_gradients(self._model, self.edges, self.relations, *self.fact)

    def facts(self) -> NDArray[np.int64]:
        """The fact behind each edge, (E, 3); every fact stands there twice."""
        node, type_, neighbour = (array.numpy() for array in self.edges.slice(0, self.edges.num_edges))
        is_inverse = type_ >= self._kg.num_relations
        direct = self._kg.direct(torch.from_numpy(type_)).numpy()
        return np.where(
            is_inverse[:, None], np.stack([neighbour, direct, node], 1), np.stack([node, direct, neighbour], 1)
        )

    def _standing(self, score_N: Tensor) -> Standing:
        answer = self.fact[2]
        share_N = score_N.double().masked_fill(~self._rival_N, -torch.inf).softmax(0)
        above = (score_N > score_N[answer]) & self._rival_N
        return Standing(float(score_N[answer]), float(share_N[answer]), 1 + int(above.sum()))

    @torch.no_grad()
    def _scores(self, edges: Edges) -> tuple[Tensor, Tensor | None]:
        starts, relation_B = Starts.single(torch.tensor([self.fact[0]])), torch.tensor([self.fact[1]])
        scores = self._model.score_entities(edges, self.relations, starts, relation_B)
        if not bool(scores.score_BC.isfinite().all()):
            head, relation = self._kg.entities[self.fact[0]], self._kg.relations[self.fact[1]]
            raise NonFiniteScoreError(
                f"the scores for ({head}, {relation}, ?) are not finite (NaN or infinity): there is nothing to explain"
            )
        return scores.score_BC[0], None if scores.weight_BCK is None else scores.weight_BCK[0]

    def _less(self, edges: Edges, triples: list[Triple]) -> Edges:
        return edges.without(self._positions(edges, triples))

    def _positions(self, edges: Edges, triples: list[Triple]) -> Tensor:
        """Where the facts stand among the edges, in both directions."""
        head, relation, tail = torch.tensor(triples, dtype=torch.long).reshape(-1, 3).T
        type_ = torch.cat([relation, self._kg.inverse(relation)])
        return edges.find(torch.cat([head, tail]), type_, torch.cat([tail, head]))
