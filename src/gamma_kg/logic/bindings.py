"""How one answer comes about: an entity for every inner set, and the facts and predictions that link them.

Where the answer follows from the graph, the links are facts of it. Else each inner set is bound, from the answer down,
to the entity that belongs to the set and is linked best with what it leads to, which is asked from there back along the
relation: a set may have thousands of certain members, of which the model links few. What is denied is bound by itself:
to what speaks most for it, and so against the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from gamma_kg.graph.inverse import inverse_of
from gamma_kg.logic.execute import Memberships
from gamma_kg.logic.formula import Along, And, Entity, Everything, Formula, Not, Or
from gamma_kg.logic.project import Projector
from gamma_kg.logic.traverse import IntArray, traverse

# So many steps are asked back at once; each gives a degree for every entity of the graph.
AT_ONCE = 8


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

    def denied_links(self) -> Iterator[Link]:
        """What the answer would have to do without."""
        for part in self.denied:
            if part.is_possible:
                yield from part.links

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
        # The entity that a step came by on its way to an end (None: nothing leads there), and what is to be found out.
        self._starts: dict[tuple[Along, int], int | None] = {}
        self._wanted: dict[tuple[Along, int], None] = {}

    def follows(self, answer: int, formula: Formula | None = None) -> bool:
        """Whether the entity belongs to the set by the facts of the graph alone."""
        found = self._set_of(formula or self.formula)
        at = int(np.searchsorted(found, answer))
        return at < len(found) and int(found[at]) == answer

    def following(self) -> IntArray:
        """All answers by the facts of the graph alone, sorted."""
        return self._set_of(self.formula)

    def bind(self, answers: Iterable[int]) -> dict[int, Binding]:
        """A binding for each answer: all together go down a step at a time, so that a step of all is one batch."""
        answers = list(answers)
        while True:
            bindings = {answer: Binding() for answer in answers}
            for answer, binding in bindings.items():
                self._bind(self.formula, answer, binding, is_asked=True)
            if not self._wanted:
                return bindings
            self._ask_back()

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
        if (formula, end) not in self._starts:
            self._wanted[formula, end] = None
        return self._starts.get((formula, end))

    def _ask_back(self) -> None:
        """From each end back along its relation: what belongs to the set and is linked best is where it came from."""
        wanted, self._wanted = list(self._wanted), {}
        num_relations = self._projector.kg.num_relations
        for first in range(0, len(wanted), AT_ONCE):
            part = wanted[first : first + AT_ONCE]
            back = [int(inverse_of(int(formula.relation), num_relations)) for formula, _ in part]
            linked_BN = self._projector.project([end for _, end in part], back)
            for (formula, end), linked_N in zip(part, linked_BN, strict=True):
                best = (self._memberships[formula.of] * linked_N).max(0)
                self._starts[formula, end] = int(best.indices) if best.values > 0 else None

    def _set_of(self, formula: Formula) -> IntArray:
        if formula not in self._sets:
            self._sets[formula] = traverse(formula, self._projector.follow, self._projector.kg.num_entities)
        return self._sets[formula]
