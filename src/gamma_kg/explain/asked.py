"""One query on one graph, asked again and again with facts taken out.

The fact in question is taken out from the start, in both directions: the question is what else speaks for it. The graph
of relations stays as it is. N entities, E edges, T layers, K branches.
"""

from __future__ import annotations

import math
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
from gamma_kg.graph.inverse import direct_of, is_inverse
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.growth import grow
from gamma_kg.nn.answers import Answers, WholeAnswers
from gamma_kg.nn.local_answers import Background, LocalAnswers
from gamma_kg.nn.model import GammaModel, RelationStates

Triple = tuple[int, int, int]


class Standing(NamedTuple):
    """How an answer stands: its score, its share among the candidates that are not known, and its rank there."""

    score: float
    share: float
    rank: int


class Neighbourhood(NamedTuple):
    """What a local answer is computed on: so many triples at most; the rest is background."""

    triples: int
    background: Background


class Asked:
    """The query (head, relation, ?) and the answer in question, with the edges it is computed on.

    Facts are named by the graph's own ids, whether the edges are those of the whole graph or of a neighbourhood.
    """

    def __init__(
        self,
        model: GammaModel,
        kg: KnowledgeGraph,
        fact: Triple,
        relations: RelationStates,
        gone: Iterable[Triple] = (),
        neighbourhood: Neighbourhood | None = None,
        rivals_less: Tensor | None = None,
    ) -> None:
        self._model, self._kg, self.fact, self.relations = model, kg, fact, relations
        self._device, self._neighbourhood = relations.state_URQ.device, neighbourhood
        self._entity_M: Tensor | None = None  # of each node, where the edges are those of a neighbourhood
        self._place: dict[int, int] | None = None
        if neighbourhood is None:
            edges = backend_of(self._device).upload(kg.edges)  # sent there once: facts are taken out on the device
        else:
            hood = grow(kg.edges, torch.tensor([fact[0]]), neighbourhood.triples)
            edges, self._entity_M = hood.edges.to(self._device), hood.entity_N
            self._place = {entity: place for place, entity in enumerate(hood.entity_N.tolist())}
        known = kg.answers(fact[0], fact[1])
        # Nobody that the answer is not ranked against: known answers, and what predict would not show.
        less = known if rivals_less is None else torch.cat((known, rivals_less)).unique()
        self._no_rival = less[less != fact[2]]
        self.edges = edges.without(self._positions(edges, [fact, *gone]))
        self.answers = self._answers(self.edges)
        self.standing = self._standing(self.answers)
        weight_1K = self.answers.weights(torch.tensor([fact[2]]))
        num = model.config.num_branches
        self.branch_weights: list[float] = [1 / num] * num if weight_1K is None else weight_1K[0].tolist()

    @property
    def is_outside(self) -> bool:
        """Whether the answer is not in the neighbourhood, so that no path leads to it."""
        return self._place is not None and self.fact[2] not in self._place

    def without(self, triples: Iterable[Triple]) -> Standing:
        """How the answer stands when these facts are gone too."""
        return self._standing(self._answers(self.edges.without(self._positions(self.edges, list(triples)))))

    def with_only(self, triples: Iterable[Triple]) -> Standing:
        """How the answer stands when these facts are all there is."""
        rest = torch.ones(self.edges.num_edges, dtype=torch.bool, device=self._device)
        rest[self._positions(self.edges, list(triples))] = False
        return self._standing(self._answers(self.edges.without(rest.nonzero()[:, 0])))

    def gradients(self) -> Tensor:
        """Of the answer's score, for a weight on each edge in each layer, (T, E)."""
        if self.is_outside:
            return torch.zeros(self._model.config.num_layers, self.edges.num_edges, dtype=torch.float64)
        source, relation, answer = self._node(self.fact[0]), self.fact[1], self._node(self.fact[2])
        return edge_gradients(self._model, self.edges, self.relations, source, relation, answer)

    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(entity, relation or inverse, entity) of each edge: what is computed from the last is added at the first."""
        node, type_, neighbour = (array.cpu().numpy() for array in self.edges.slice(0, self.edges.num_edges))
        if self._entity_M is None:
            return node, type_, neighbour
        entity_M = self._entity_M.numpy()
        return entity_M[node], type_, entity_M[neighbour]

    def facts(self) -> NDArray[np.int64]:
        """The fact behind each edge, (E, 3); every fact stands there twice."""
        node, type_, neighbour = self.ends()
        direct = direct_of(type_, self._kg.num_relations)
        reads_back = is_inverse(type_, self._kg.num_relations)[:, None]
        return np.where(reads_back, np.stack([neighbour, direct, node], 1), np.stack([node, direct, neighbour], 1))

    def _standing(self, answers: Answers) -> Standing:
        score = float(answers.at(torch.tensor([self.fact[2]]))[0])
        share = math.exp(score - answers.log_total(self._no_rival))
        return Standing(score, share, answers.rank(self.fact[2], self._no_rival))

    @torch.no_grad()
    def _answers(self, edges: Edges) -> Answers:
        starts = Starts.single(torch.tensor([self._node(self.fact[0])]))
        relation_B = torch.tensor([self.fact[1]], device=self._device)
        scores = self._model.score_entities(edges, self.relations, starts.to(self._device), relation_B)
        score_N = scores.score_BC[0].cpu()
        if not bool(score_N.isfinite().all()):
            head, relation = self._kg.entities[self.fact[0]], self._kg.relations[self.fact[1]]
            raise NonFiniteScoreError(
                f"the scores for ({head}, {relation}, ?) are not finite (NaN or infinity): there is nothing to explain"
            )
        weight_NK = None if scores.weight_BCK is None else scores.weight_BCK[0].cpu()
        near = self._neighbourhood
        if near is None or self._entity_M is None:
            return WholeAnswers(score_N, weight_NK)
        return LocalAnswers(near.triples, self._entity_M, score_N, weight_NK, near.background)

    def _node(self, entity: int) -> int:
        return entity if self._place is None else self._place[entity]

    def _positions(self, edges: Edges, triples: list[Triple]) -> Tensor:
        """Where the facts stand among the edges, in both directions; those outside of the neighbourhood do not."""
        if self._place is not None:
            place = self._place
            triples = [(place[h], r, place[t]) for h, r, t in triples if h in place and t in place]
        head, relation, tail = torch.tensor(triples, dtype=torch.long, device=self._device).reshape(-1, 3).T
        type_ = torch.cat([relation, self._kg.inverse(relation)])
        return edges.find(torch.cat([head, tail]), type_, torch.cat([tail, head]))
