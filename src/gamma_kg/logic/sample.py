"""Samples queries of given shapes with their answers: those that follow from the seen facts, and those that do not.

    seen facts    what a model is given
    true facts    the seen ones and the held-out ones
    easy answers  follow from the seen facts, and are true
    hard answers  are true and do not follow from the seen facts
    unseen        hard answers that no chain of reasoning with even one seen link leads to: ALL links must be predicted

A query is grounded backwards from a random answer, so that it has one. Most hard answers of the classic sampling need
fewer predictions than the query has steps (Gregucci et al., 2025); the balance "unseen" grounds on held-out facts only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import ConfigError, did_you_mean
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.logic.formula import Along, And, Entity, Formula, Not, Or
from gamma_kg.logic.lists import SHAPES, from_lists
from gamma_kg.logic.traverse import Follow, follow_known, partly_seen, traverse

IntArray = NDArray[np.int64]
BALANCES = ("classic", "unseen")
# Attempts per query wanted: where a graph has too few of a shape, sampling ends with those it found.
ATTEMPTS = 300


@dataclass(frozen=True, eq=False)
class LogicalQuery:
    """A formula by ids with its answers, sorted; `unseen` is part of `hard`."""

    shape: str
    balance: str
    formula: Formula
    easy: IntArray
    hard: IntArray
    unseen: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def ranked(self) -> IntArray:
        """The answers that are measured."""
        return self.unseen if self.balance == "unseen" else self.hard


class Facts:
    """Seen and true facts, ready to be followed and drawn from."""

    def __init__(self, seen: IntArray, true: IntArray, num_entities: int, num_relations: int) -> None:
        self.num_entities, self.num_relations = num_entities, num_relations
        self.seen: Follow = follow_known(KnownAnswers.build(seen, num_entities, num_relations))
        self.true: Follow = follow_known(KnownAnswers.build(true, num_entities, num_relations))
        both = np.unique(np.concatenate((seen, true)), axis=0)
        kept, count = np.unique(np.concatenate((both, np.unique(seen, axis=0))), axis=0, return_counts=True)
        self.edges = {
            "classic": Edges.of_triples(both, num_entities, num_relations),
            "unseen": Edges.of_triples(kept[count == 1], num_entities, num_relations),
        }


def sample_queries(
    facts: Facts,
    per_shape: int,
    *,
    shapes: Sequence[str] = tuple(SHAPES),
    balance: str = "classic",
    max_answers: int = 100,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[LogicalQuery]:
    """Up to `per_shape` distinct queries of each shape; the same seed gives the same ones, shape by shape."""
    for name, among in ((balance, BALANCES), *((shape, tuple(SHAPES)) for shape in shapes)):
        if name not in among:
            raise ConfigError(f"no {name!r} among {', '.join(among)}{did_you_mean(name, among)}")
    found: list[LogicalQuery] = []
    for number, shape in enumerate(shapes):
        # A generator per shape: asking for fewer shapes does not change the others.
        rng = np.random.default_rng([seed, list(SHAPES).index(shape), BALANCES.index(balance)])
        found += _of_shape(facts, shape, per_shape, balance, max_answers, rng)
        if progress is not None:
            progress(number + 1, len(shapes))
    return found


def _of_shape(
    facts: Facts, shape: str, wanted: int, balance: str, max_answers: int, rng: np.random.Generator
) -> list[LogicalQuery]:
    template = from_lists(SHAPES[shape])
    edges = facts.edges[balance]
    ends = np.flatnonzero(np.diff(edges.node_ptr.numpy()))
    found: dict[Formula, LogicalQuery] = {}
    for _ in range(ATTEMPTS * wanted if len(ends) else 0):
        if len(found) == wanted:
            break
        formula = _Grounding(facts, edges, rng).ground(template, int(rng.choice(ends)))
        if formula is None or formula in found:
            continue
        query = with_answers(facts, shape, balance, formula, max_answers)
        if query is not None and len(query.ranked):
            found[formula] = query
    return list(found.values())


def with_answers(
    facts: Facts, shape: str, balance: str, formula: Formula, max_answers: int | None = None
) -> LogicalQuery | None:
    """The query with its answers; None where there are more than `max_answers`."""
    true = traverse(formula, facts.true, facts.num_entities)
    if max_answers is not None and len(true) > max_answers:
        return None
    seen = traverse(formula, facts.seen, facts.num_entities)
    hard = np.setdiff1d(true, seen, assume_unique=True)
    easy = np.intersect1d(true, seen, assume_unique=True)
    _, helped = partly_seen(formula, facts.seen, facts.true, facts.num_entities)
    return LogicalQuery(shape, balance, formula, easy, hard, np.setdiff1d(hard, helped, assume_unique=True))


class _Grounding:
    """Puts entities and relations into a shape, backwards from an answer. None where the draw leads nowhere."""

    def __init__(self, facts: Facts, edges: Edges, rng: np.random.Generator) -> None:
        self._facts, self._edges, self._rng = facts, edges, rng

    def ground(self, template: Formula, answer: int, last: int = -1) -> Formula | None:
        """`last` is the relation that leads on from here: going back along it at once would ask for nothing."""
        if isinstance(template, Entity):
            return Entity(answer)
        if isinstance(template, Along):
            return self._along(template, answer, last)
        if isinstance(template, Or):
            # The answer fulfils one branch; the other is about something else.
            others = [self._anywhere() for _ in template.members[1:]]
            return self._joined(template, [answer, *others], last)
        assert isinstance(template, And)
        return self._and(template, answer, last)

    def _along(self, template: Along, answer: int, last: int) -> Formula | None:
        drawn = self._fact_at(answer)
        if drawn is None:
            return None
        outward, start = drawn
        relation = self._inverse(outward)
        if relation == self._inverse(last):
            return None
        of = self.ground(template.of, start, relation)
        return None if of is None else Along(relation, of)

    def _and(self, template: And, answer: int, last: int) -> Formula | None:
        positive = [part for part in template.members if not isinstance(part, Not)]
        found = self._joined(And(tuple(positive)), [answer] * len(positive), last)
        if found is None or len(positive) == len(template.members):
            return found
        assert isinstance(found, And)
        rest = traverse(found, self._facts.true, self._facts.num_entities)
        rest = rest[rest != answer]
        if not len(rest):  # a denial that takes nothing away asks for nothing
            return None
        asserted = iter(found.members)
        members: list[Formula] = []
        everything = _Grounding(self._facts, self._facts.edges["classic"], self._rng)
        for part in template.members:
            if not isinstance(part, Not):
                members.append(next(asserted))
                continue
            denied = everything.ground(part.of, int(self._rng.choice(rest)), last)
            if denied is None:
                return None
            members.append(Not(denied))
        return And(tuple(members))

    def _joined(self, template: And | Or, answers: Sequence[int], last: int) -> Formula | None:
        members = []
        for part, answer in zip(template.members, answers, strict=True):
            member = self.ground(part, answer, last)
            if member is None or member in members:
                return None
            members.append(member)
        return And(tuple(members)) if isinstance(template, And) else Or(tuple(members))

    def _fact_at(self, entity: int) -> tuple[int, int] | None:
        """A relation that leads away from the entity, all alike probable, and where it leads to."""
        edges = self._edges
        low, high = int(edges.node_ptr[entity]), int(edges.node_ptr[entity + 1])
        if low == high:
            return None
        group = int(self._rng.integers(low, high))
        position = int(self._rng.integers(int(edges.group_ptr[group]), int(edges.group_ptr[group + 1])))
        return int(edges.group_type[group]), int(edges.neighbour[position])

    def _anywhere(self) -> int:
        return int(self._edges.neighbour[int(self._rng.integers(self._edges.num_edges))])

    def _inverse(self, relation: int) -> int:
        return -1 if relation < 0 else int(self._edges.inverse[relation])
