"""One query on one graph, asked again and again with facts taken out.

The fact in question is taken out from the start, in both directions: the question is what else speaks for it. The graph
of relations stays as it is. N entities, E edges, T layers, K branches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import NonFiniteScoreError
from gamma_kg.explain.gradients import edge_gradients
from gamma_kg.explain.ground import Ground, Triple
from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, is_inverse
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.growth import grow
from gamma_kg.nn.answers import Answers, WholeAnswers
from gamma_kg.nn.local_answers import WIDE_SHARE, Background, LocalAnswers, Seen
from gamma_kg.nn.model import GammaModel, RelationStates, Scores

# Removals that go through the model side by side, and so many edges and nodes at most: more brings nothing.
AT_ONCE, EDGES_AT_ONCE = 16, 1 << 21


class Standing(NamedTuple):
    """How an answer stands: its score, its share among the candidates that are not known, and its rank there."""

    score: float
    share: float
    rank: int


class Neighbourhood(NamedTuple):
    """What a local answer is computed on: neighbourhoods of so many triples at most; the rest is background."""

    sizes: Sequence[int]  # a wide one, and perhaps a near one
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
        if neighbourhood is None:  # sent there once: facts are taken out on the device
            grounds = [Ground(backend_of(self._device).upload(kg.edges))]
        else:
            hoods = [grow(kg.edges, torch.tensor([fact[0]]), size) for size in neighbourhood.sizes]
            grounds = [Ground(hood.edges.to(self._device), hood.entity_N) for hood in hoods]
        known = kg.answers(fact[0], fact[1])
        # Nobody that the answer is not ranked against: known answers, and what predict would not show.
        less = known if rivals_less is None else torch.cat((known, rivals_less)).unique()
        self._no_rival = less[less != fact[2]]
        self.grounds = [ground.less([fact, *gone]) for ground in grounds]
        self.answers = self._answers(self.grounds)
        self.standing = self._standing(self.answers)
        weight_1K = self.answers.weights(torch.tensor([fact[2]]))
        num = model.config.num_branches
        self.branch_weights: list[float] = [1 / num] * num if weight_1K is None else weight_1K[0].tolist()

    @property
    def is_outside(self) -> bool:
        """Whether the answer is in no neighbourhood, so that no path leads to it."""
        return all(ground.node(self.fact[2]) is None for ground in self.grounds)

    def without(self, triples: Iterable[Triple]) -> Standing:
        """How the answer stands when these facts are gone too."""
        return self.without_each([list(triples)])[0]

    def without_each(self, removals: Sequence[Sequence[Triple]]) -> list[Standing]:
        """How the answer stands when some facts are gone, when some others are, and so on.

        Many of these go through the model side by side: alone, each spends half of its time on the way there and back.
        """
        largest = max(ground.edges.num_edges + ground.edges.num_nodes for ground in self.grounds)
        size = max(1, min(AT_ONCE, EDGES_AT_ONCE // max(1, largest)))
        found = []
        for first in range(0, len(removals), size):
            part = removals[first : first + size]
            scores = [self._scores_each(ground, part) for ground in self.grounds]
            found += [self._standing(self._answers_of(own)) for own in zip(*scores, strict=True)]
        return found

    def with_only(self, triples: Iterable[Triple]) -> Standing:
        """How the answer stands when these facts are all there is."""
        given = list(triples)
        return self._standing(self._answers([ground.only(given) for ground in self.grounds]))

    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(entity, relation or inverse, entity) of each edge: what is computed from the last is added at the first."""
        node, type_, neighbour = self._edges[0].T
        return node, type_, neighbour

    def gradients(self) -> Tensor:
        """Of the answer's score, for a weight on each edge in each layer, (T, E)."""
        end_E3, positions = self._edges
        total_TE = torch.zeros(self._model.config.num_layers, len(end_E3), dtype=torch.float64)
        shares = [1.0] if len(self.grounds) == 1 else [WIDE_SHARE, 1 - WIDE_SHARE]
        for ground, share, position_e in zip(self.grounds, shares, positions, strict=True):
            source, answer = (ground.node(self.fact[end]) for end in (0, 2))
            if source is not None and answer is not None:
                own_Te = edge_gradients(self._model, ground.edges, self.relations, source, self.fact[1], answer)
                total_TE.index_add_(1, position_e, share * own_Te)
        return total_TE

    def facts(self) -> NDArray[np.int64]:
        """The fact behind each edge, (E, 3); every fact stands there twice."""
        node, type_, neighbour = self.ends()
        direct = direct_of(type_, self._kg.num_relations)
        reads_back = is_inverse(type_, self._kg.num_relations)[:, None]
        return np.where(reads_back, np.stack([neighbour, direct, node], 1), np.stack([node, direct, neighbour], 1))

    @cached_property
    def _edges(self) -> tuple[NDArray[np.int64], list[Tensor]]:
        """All edges by entities, and for each ground where its own stand among them."""
        ends = [ground.ends() for ground in self.grounds]
        if len(ends) == 1:
            return ends[0], [torch.arange(len(ends[0]))]
        end_E3, position = np.unique(np.concatenate(ends), axis=0, return_inverse=True)
        return end_E3, list(torch.from_numpy(position.reshape(-1)).split([len(own) for own in ends]))

    def _standing(self, answers: Answers) -> Standing:
        score = float(answers.at(torch.tensor([self.fact[2]]))[0])
        share = math.exp(score - answers.log_total(self._no_rival))
        return Standing(score, share, answers.rank(self.fact[2], self._no_rival))

    def _answers(self, grounds: Sequence[Ground]) -> Answers:
        return self._answers_of([self._scores(ground) for ground in grounds])

    def _answers_of(self, scores: Sequence[Scores]) -> Answers:
        """From what the model says on each of the grounds."""
        if self._neighbourhood is None:
            return WholeAnswers(*scores[0])
        sizes, background = self._neighbourhood
        wide, *near = [
            Seen(ground.entity_N, *own)
            for ground, own in zip(self.grounds, scores, strict=True)
            if ground.entity_N is not None
        ]
        return LocalAnswers.of(sizes[0], wide, near[0] if near else None, background)

    def _scores(self, ground: Ground) -> Scores:
        """Of all nodes, on the CPU."""
        if ground.entity_N is not None:  # as predict does it, for the same bits
            return self._side_by_side(ground.edges, [ground.node(self.fact[0])])[0]
        starts = Starts.single(torch.tensor([self.fact[0]], device=self._device))
        relation_B = torch.tensor([self.fact[1]], device=self._device)
        with torch.no_grad():
            score_1N, weight_1NK = self._model.score_entities(ground.edges, self.relations, starts, relation_B)
        return self._checked(Scores(score_1N[0], None if weight_1NK is None else weight_1NK[0]))

    def _scores_each(self, ground: Ground, removals: Sequence[Sequence[Triple]]) -> list[Scores]:
        """The same without some facts, without some others, and so on."""
        source, num_nodes = ground.node(self.fact[0]), ground.edges.num_nodes
        assert source is not None, "a neighbourhood holds its start"
        return self._side_by_side(ground.less_each(removals), [source + n * num_nodes for n in range(len(removals))])

    @torch.no_grad()
    def _side_by_side(self, edges: EdgeGroups, sources: Sequence[int | None]) -> list[Scores]:
        """Of all nodes of graphs that lie side by side and have as many nodes each, with a source in each of them."""
        count = len(sources)
        score_N, weight_NK = self._model.score_neighbourhoods(
            edges,
            torch.arange(count + 1, device=self._device) * (edges.num_nodes // count),
            self.relations._replace(which_B=self.relations.which_B.expand(count).contiguous()),
            Starts.single(torch.tensor(sources, device=self._device)),
            torch.full((count,), self.fact[1], device=self._device),
        )
        scores = self._checked(Scores(score_N, weight_NK))
        each = scores.score_BC.chunk(count)
        weights = [None] * count if scores.weight_BCK is None else scores.weight_BCK.chunk(count)
        return list(map(Scores, each, weights))

    def _checked(self, scores: Scores) -> Scores:
        """The same on the CPU, where all of them are numbers."""
        score_N = scores.score_BC.cpu()
        if not bool(score_N.isfinite().all()):
            head, relation = self._kg.entities[self.fact[0]], self._kg.relations[self.fact[1]]
            raise NonFiniteScoreError(
                f"the scores for ({head}, {relation}, ?) are not finite (NaN or infinity): there is nothing to explain"
            )
        return Scores(score_N, None if scores.weight_BCK is None else scores.weight_BCK.cpu())
