"""How one answer comes about: an entity for every inner set, and the facts and predictions that link them.

Where the answer follows from the graph, the links are facts of it. Else each inner set is bound, from the answer down,
to the entity that belongs to the set and leads on by the strongest link. What is denied is bound by itself: to what
speaks most for it, and so against the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.inverse import inverse_of
from gamma_kg.logic.execute import Memberships
from gamma_kg.logic.formula import Along, And, Entity, Everything, Formula, Not, Or
from gamma_kg.logic.project import Projector
from gamma_kg.logic.traverse import IntArray, traverse

# So many of a set's best members are tried as the entity that an answer came by.
CANDIDATES = 8


@dataclass(frozen=True)
class Link:
    """One step by ids: from `start` along `relation` (0..2R-1) to `end`."""

    start: int
    relation: int
    end: int
    known: bool


LinkProbabilities = Mapping[Link, float]


@dataclass
class Binding:
    """Entities for the named inner sets, and the links of all positive steps, from the answer down."""

    entities: dict[str, int] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    denied: list[Binding] = field(default_factory=list)
    is_possible: bool = True  # no, where the entity is another than the one named, or nothing leads to it

    def all_links(self) -> Iterator[Link]:
        """Those of what is denied too."""
        yield from self.links
        for part in self.denied:
            yield from part.all_links()

    def probability(self, of: LinkProbabilities) -> float:
        """That all the links hold, and nothing that is denied does."""
        if not self.is_possible:
            return 0.0
        holds = math.prod(of[link] for link in self.links)
        return holds * math.prod(1 - part.probability(of) for part in self.denied)


class Binder:
    """Binds answers of one executed formula."""

    def __init__(self, formula: Formula, memberships: Memberships, projector: Projector) -> None:
        self.formula, self._memberships, self._projector = formula, memberships, projector
        self._sets: dict[Formula, IntArray] = {}
        self._links: dict[Along, tuple[Tensor, Tensor]] = {}

    def follows(self, answer: int, formula: Formula | None = None) -> bool:
        """Whether the entity belongs to the set by the facts of the graph alone."""
        found = self._set_of(formula or self.formula)
        at = int(np.searchsorted(found, answer))
        return at < len(found) and int(found[at]) == answer

    def following(self) -> IntArray:
        """All answers by the facts of the graph alone, sorted."""
        return self._set_of(self.formula)

    def bind(self, answer: int) -> Binding:
        found = Binding()
        self._bind(self.formula, answer, found, is_asked=True)
        return found

    def _bind(self, formula: Formula, entity: int, found: Binding, is_asked: bool = False) -> None:
        if formula.name and not is_asked:
            found.entities.setdefault(formula.name, entity)
        if isinstance(formula, And):
            for part in formula.members:
                self._bind(part, entity, found, is_asked)
        elif isinstance(formula, Not):
            denied = Binding()
            self._bind(formula.of, entity, denied)
            found.denied.append(denied)
        elif isinstance(formula, Or):
            follows = [self.follows(entity, part) for part in formula.members]
            degrees = [float(self._memberships[part][entity]) for part in formula.members]
            best = max(range(len(degrees)), key=lambda i: (follows[i], degrees[i]))
            self._bind(formula.members[best], entity, found, is_asked)
        elif isinstance(formula, Entity):
            found.is_possible &= int(formula.entity) == entity
        elif isinstance(formula, Along):
            start = self._start(formula, entity)
            if start is None:
                found.is_possible = False
                return
            known = entity in self._projector.follow(np.array([start]), int(formula.relation))
            found.links.append(Link(start, int(formula.relation), entity, known))
            self._bind(formula.of, start, found)

    def _start(self, formula: Along, end: int) -> int | None:
        """The entity of the inner set that the step came from."""
        if isinstance(formula.of, Entity):
            return int(formula.of.entity)
        relation, num_relations = int(formula.relation), self._projector.kg.num_relations
        if self.follows(end, formula):
            back = self._projector.follow(np.array([end]), int(inverse_of(relation, num_relations)))
            witnesses = np.intersect1d(back, self._set_of(formula.of), assume_unique=True)
            degree = self._memberships[formula.of][torch.from_numpy(witnesses)]
            return int(witnesses[int(degree.argmax())])
        if isinstance(formula.of, Everything):
            return None
        start_C, link_CN = self._candidates(formula)
        if not len(start_C):
            return None
        best = int((self._memberships[formula.of][start_C] * link_CN[:, end]).argmax())
        return int(start_C[best])

    def _candidates(self, formula: Along) -> tuple[Tensor, Tensor]:
        """The best members of the inner set, and the degree to which each leads to every entity."""
        if formula not in self._links:
            degree_N = self._memberships[formula.of]
            start_C = degree_N.topk(min(CANDIDATES, len(degree_N))).indices
            start_C = start_C[degree_N[start_C] > 0]
            relations = [int(formula.relation)] * len(start_C)
            link_CN = self._projector.project(start_C.tolist(), relations) if relations else degree_N[None, :0]
            self._links[formula] = start_C, link_CN
        return self._links[formula]

    def _set_of(self, formula: Formula) -> IntArray:
        if formula not in self._sets:
            self._sets[formula] = traverse(formula, self._projector.follow, self._projector.kg.num_entities)
        return self._sets[formula]
