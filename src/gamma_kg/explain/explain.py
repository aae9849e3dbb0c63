"""Explanation of one fact: gradients find the paths, removal from the graph measures them and every fact near by.

Paths come from a beam search over gradients and are ordered by how far the score falls when their facts are taken out
of the graph. Which single facts decide is found by removal alone (`deciding.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, cast

from torch import Tensor

from gamma_kg.drawing.svg import escape
from gamma_kg.errors import DataError
from gamma_kg.explain.asked import Asked, Neighbourhood
from gamma_kg.explain.beam import best_walks
from gamma_kg.explain.deciding import Cause, Decision, Tested, deciding_facts
from gamma_kg.explain.ground import Triple
from gamma_kg.explain.picture import draw_html, draw_svg
from gamma_kg.explain.text import describe
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import is_inverse
from gamma_kg.nn.model import GammaModel, RelationStates
from gamma_kg.rules.reasons import Reason

BEAM = 8
MIN_WALKS = 20


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
    share: float  # of the answer without it, among its rivals
    rank: int  # of the answer without it


@dataclass(frozen=True)
class KeyPair:
    """Two facts that decide together where neither does alone."""

    first: tuple[str, str, str]
    second: tuple[str, str, str]
    drop: float
    share: float
    rank: int


@dataclass(frozen=True)
class Explanation:
    """Why a fact is believed. `text`, `json`, `svg` and `html` show it."""

    head: str
    relation: str
    tail: str
    score: float
    probability: float  # as in `predict` and `complete`: fitted to this graph where that was done, else the share
    share: float  # of the scores of all candidates that are not known; what removals are measured by
    rank: int  # among the candidates that are not known
    known: bool
    branch_weights: dict[str, float]
    paths: tuple[Path, ...]
    facts: tuple[KeyFact, ...]  # those whose removal costs most, most first
    pairs: tuple[KeyPair, ...]  # only where no single fact decides
    cause: Cause  # what the answer rests on: one fact, two together, many, or none of those tested
    num_tested: int  # facts that were taken out, one at a time
    local: int | None  # computed on a neighbourhood of at most so many facts; None: on the whole graph
    is_outside: bool  # the tail is not in that neighbourhood: its score is what the relation usually gives it
    reasons: tuple[Reason, ...] = ()  # rules with their support in the graph, best first
    why_not: str | None = None  # what the graph's own patterns say against it
    is_calibrated: bool = False  # the probability was fitted to this graph

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

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f"{self.svg()}<pre>{escape(self.text())}</pre>"

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
    rivals_less: Tensor | None = None,
    relations: Callable[[int], RelationStates],
    neighbourhood: Callable[[int, int], Neighbourhood | None] = lambda head, relation: None,
) -> Explanation:
    """Explains why `tail` answers (head, relation, ?), on the graph less the facts `without`.

    `rivals_less` are entities (ids) that the answer is not ranked against: `predict` would not show them.
    `relations` gives the relation states for a relation, `neighbourhood` what to compute on for a head and a relation;
    None: all of the graph.
    """
    if num_paths < 1 or num_facts < 0:
        raise DataError(f"ask for at least one path and no negative number of facts, got {num_paths} and {num_facts}")
    fact = kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail)
    known = bool((kg.answers(fact[0], fact[1]) == fact[2]).any())
    gone = [(kg.entity_id(h), kg.relation_id(r), kg.entity_id(t)) for h, r, t in without]
    asked = Asked(model, kg, fact, relations(fact[1]), gone, neighbourhood(*fact[:2]), rivals_less)
    names = list(branch_names) or [*model.config.branches]
    gradient_TE = asked.gradients().numpy()
    receiver, type_, sender = asked.ends()
    walks = best_walks(
        receiver, sender, gradient_TE, fact[0], fact[2], beam=BEAM, count=max(MIN_WALKS, 3 * num_paths)
    )  # more than asked for: removal puts them in order
    fact_E3 = asked.facts()
    triples = [[cast(Triple, tuple(fact_E3[e].tolist())) for e in walk.edges] for walk in walks]
    paths = []
    for walk, steps, less in zip(walks, triples, asked.without_each(triples), strict=True):
        # A walk runs from sender to receiver: through an inverse edge that is from the fact's head to its tail.
        forward = [bool(is_inverse(type_[e], kg.num_relations)) for e in walk.edges]
        named = tuple(Step(*_named(kg, triple), way) for triple, way in zip(steps, forward, strict=True))
        paths.append(Path(named, walk.weight, asked.standing.score - less.score))
    paths.sort(key=lambda path: -path.drop)
    decision = Decision("none", [], [], 0)
    if num_facts and not asked.is_outside:
        decision = deciding_facts(asked, triples, gradient_TE)
    return Explanation(
        head=kg.entities[fact[0]],
        relation=kg.relations[fact[1]],
        tail=kg.entities[fact[2]],
        score=asked.standing.score,
        probability=asked.standing.share,
        share=asked.standing.share,
        rank=asked.standing.rank,
        known=known,
        branch_weights=dict(zip(names, asked.branch_weights, strict=True)),
        paths=tuple(paths[:num_paths]),
        facts=tuple(_key_fact(kg, asked, tested) for tested in decision.single[:num_facts]),
        pairs=tuple(_key_pair(kg, asked, tested) for tested in decision.pairs[:num_facts]),
        cause=decision.cause,
        num_tested=decision.num_tested,
        local=asked.answers.local,
        is_outside=asked.is_outside,
    )


def _named(kg: KnowledgeGraph, triple: Triple) -> tuple[str, str, str]:
    head, relation, tail = triple
    return kg.entities[head], kg.relations[relation], kg.entities[tail]


def _key_fact(kg: KnowledgeGraph, asked: Asked, tested: Tested) -> KeyFact:
    (triple,), without = tested
    return KeyFact(*_named(kg, triple), asked.standing.score - without.score, without.share, without.rank)


def _key_pair(kg: KnowledgeGraph, asked: Asked, tested: Tested) -> KeyPair:
    first, second = (_named(kg, triple) for triple in tested.facts)
    without = tested.without
    return KeyPair(first, second, asked.standing.score - without.score, without.share, without.rank)
