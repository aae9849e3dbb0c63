"""Explanation of one fact: gradients find the candidates, removal from the graph measures them.

Paths come from a beam search over gradients and are then ordered by how far the score falls when their facts are
taken out of the graph; the same for single facts. If the fact itself is in the graph, it is taken out first: the
question is what else speaks for it. The relation graph stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.explain.beam import best_walks
from gamma_kg.explain.gradients import edge_gradients
from gamma_kg.explain.picture import draw_html, draw_svg
from gamma_kg.explain.text import describe
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.nn.model import GammaModel, RelationStates

BEAM = 8
MIN_WALKS = 20
Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Step:
    """One fact on a path; `forward` if the path runs through it from its head to its tail."""

    head: str
    relation: str
    tail: str
    forward: bool


@dataclass(frozen=True)
class Path:
    """A chain of facts from the head to the tail in question."""

    steps: tuple[Step, ...]
    importance: float  # mean gradient of the score along the path
    drop: float  # how far the score falls without these facts


@dataclass(frozen=True)
class KeyFact:
    """A single fact that the answer rests on."""

    head: str
    relation: str
    tail: str
    drop: float  # how far the score falls without it; negative if it rises
    rank: int  # of the answer without it


@dataclass(frozen=True)
class Explanation:
    """Why a fact is believed. `text`, `json`, `svg` and `html` show it."""

    head: str
    relation: str
    tail: str
    score: float
    probability: float
    rank: int  # among the candidates that are not known
    known: bool
    branch_weights: dict[str, float]
    paths: tuple[Path, ...]
    facts: tuple[KeyFact, ...]

    def text(self) -> str:
        """For reading in a terminal."""
        return describe(self)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def svg(self) -> str:
        """A picture: the paths from left to right, the branches' shares, the facts that matter most."""
        return draw_svg(self)

    def html(self) -> str:
        """The picture as a page of its own, with the details below."""
        return draw_html(self)


def explain(
    model: GammaModel,
    kg: KnowledgeGraph,
    head: str,
    relation: str,
    tail: str,
    *,
    num_paths: int = 5,
    num_facts: int = 5,
    branch_names: Iterable[str] = (),
    without: Iterable[tuple[str, str, str]] = (),
) -> Explanation:
    """Explains why `tail` answers (head, relation, ?), on the graph less the facts `without`."""
    if num_paths < 1 or num_facts < 0:
        raise DataError(f"ask for at least one path and no negative number of facts, got {num_paths} and {num_facts}")
    fact = kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail)
    known = bool((kg.answers(fact[0], fact[1]) == fact[2]).any())
    gone = [(kg.entity_id(h), kg.relation_id(r), kg.entity_id(t)) for h, r, t in without]
    asked = _Asked(model, kg, fact, gone)
    names = list(branch_names) or [*model.config.branches]
    weights = asked.branch_weights
    receiver, type_, sender = (array.numpy() for array in asked.edges.slice(0, asked.edges.num_edges))
    gradient_TE = asked.gradients().numpy()
    walks = best_walks(
        receiver, sender, gradient_TE, fact[0], fact[2], beam=BEAM, count=max(MIN_WALKS, 3 * num_paths)
    )  # more than asked for: removal puts them in order
    paths = []
    for walk in walks:
        steps = [
            (_triple(kg, receiver[e], type_[e], sender[e]), bool(type_[e] >= kg.num_relations)) for e in walk.edges
        ]
        drop, _ = asked.without([triple for triple, _ in steps])
        named = tuple(Step(*_named(kg, triple), forward) for triple, forward in steps)
        paths.append(Path(named, walk.weight, drop))
    paths.sort(key=lambda path: -path.drop)
    return Explanation(
        head=kg.entities[fact[0]],
        relation=kg.relations[fact[1]],
        tail=kg.entities[fact[2]],
        score=asked.score,
        probability=asked.probability,
        rank=asked.rank,
        known=known,
        branch_weights=dict(zip(names, weights, strict=True)),
        paths=tuple(paths[:num_paths]),
        facts=tuple(_key_facts(kg, asked, gradient_TE, (receiver, type_, sender), num_facts)),
    )


class _Asked:
    """The query with the graph it is asked on: scores as they are, and with facts removed."""

    def __init__(self, model: GammaModel, kg: KnowledgeGraph, fact: Triple, gone: list[Triple]) -> None:
        self._model, self._kg, self.fact = model, kg, fact
        self.edges = _without(kg, kg.edges, [fact, *gone])
        relation_B = torch.tensor([fact[1]])
        with torch.no_grad():
            self.relations: RelationStates = model.relation_states(kg.relation_graph, kg.edges.inverse, relation_B)
        self._rival = torch.ones(kg.num_entities, dtype=torch.bool)
        self._rival[kg.answers(fact[0], fact[1])] = False
        self._rival[fact[2]] = True
        score_N, weight_NK = self._scores(self.edges)
        self.score, self.rank = float(score_N[fact[2]]), self._rank(score_N)
        share_N = score_N.double().masked_fill(~self._rival, -torch.inf).softmax(0)
        self.probability = float(share_N[fact[2]])
        num = model.config.num_branches
        self.branch_weights = [1 / num] * num if weight_NK is None else weight_NK[fact[2]].tolist()

    def gradients(self) -> Tensor:
        return edge_gradients(self._model, self.edges, self.relations, *self.fact)

    def without(self, triples: list[Triple]) -> tuple[float, int]:
        """How far the score falls, and the answer's rank, when these facts are gone too."""
        score_N, _ = self._scores(_without(self._kg, self.edges, triples))
        return self.score - float(score_N[self.fact[2]]), self._rank(score_N)

    @torch.no_grad()
    def _scores(self, edges: Edges) -> tuple[Tensor, Tensor | None]:
        starts, relation_B = Starts.single(torch.tensor([self.fact[0]])), torch.tensor([self.fact[1]])
        scores = self._model.score_entities(edges, self.relations, starts, relation_B)
        return scores.score_BC[0], None if scores.weight_BCK is None else scores.weight_BCK[0]

    def _rank(self, score_N: Tensor) -> int:
        return 1 + int(((score_N > score_N[self.fact[2]]) & self._rival).sum())


def _without(kg: KnowledgeGraph, edges: Edges, triples: list[Triple]) -> Edges:
    """The edges less those of the triples, in both directions."""
    head, relation, tail = torch.tensor(triples, dtype=torch.long).T
    node, type_ = torch.cat([head, tail]), torch.cat([relation, relation + kg.num_relations])
    return edges.without(edges.find(node, type_, torch.cat([tail, head])))


def _key_facts(
    kg: KnowledgeGraph, asked: _Asked, gradient_TE: Any, ends: tuple[Any, Any, Any], count: int
) -> list[KeyFact]:
    """The facts whose removal moves the score most, found by gradient over both directions and all layers."""
    receiver, type_, sender = ends
    is_direct = type_ < kg.num_relations
    triple_E3 = np.where(
        is_direct[:, None],
        np.stack([receiver, type_, sender], 1),
        np.stack([sender, type_ - kg.num_relations, receiver], 1),
    )
    triples, which = np.unique(triple_E3, axis=0, return_inverse=True)
    weight = np.bincount(which.ravel(), gradient_TE.sum(0), len(triples))
    likely = np.argsort(-np.abs(weight), kind="stable")[: 3 * count]
    found = []
    for triple in triples[likely].tolist():
        drop, rank = asked.without([tuple(triple)])
        found.append(KeyFact(*_named(kg, triple), drop, rank))
    return sorted(found, key=lambda fact: -abs(fact.drop))[:count]


def _triple(kg: KnowledgeGraph, receiver: int, type_: int, sender: int) -> Triple:
    """The fact behind an edge (receiver, type, sender)."""
    if type_ < kg.num_relations:
        return int(receiver), int(type_), int(sender)
    return int(sender), int(type_) - kg.num_relations, int(receiver)


def _named(kg: KnowledgeGraph, triple: Iterable[int]) -> tuple[str, str, str]:
    head, relation, tail = triple
    return kg.entities[head], kg.relations[relation], kg.entities[tail]
