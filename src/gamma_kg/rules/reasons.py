"""Reasons for a fact as rules with their support in this graph, found around the two ends of the fact.

| reason       | rule                                              | counted among                                 |
|--------------|---------------------------------------------------|-----------------------------------------------|
| other link   | x s y ⇒ x r y, and y s x ⇒ x r y                  | facts of s                                    |
| alike heads  | x s e ⇒ x r tail                                  | other things that share a fact of the head    |
| alike tails  | y s e ⇒ head r y                                  | other things that share a fact of the tail    |
| path         | x s y and y u z ⇒ x r z                           | ends of such paths from a sample of heads     |

Paths of one kind are one reason, whatever they run through. A reason counts by the least share that its count allows
for (`rules/bounds.py`), and is left out where that is no more than chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gamma_kg.graph.edges import bisect
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, fact_of, inverse_of, is_inverse
from gamma_kg.rules.bounds import at_least
from gamma_kg.rules.large import SampledRules
from gamma_kg.rules.rules import rules_of

IntArray = NDArray[np.int64]
# How much is looked at around a fact: enough for a share, little enough for a page of a hundred facts.
MAX_FACTS = 60  # of an end
MAX_THINGS = 5_000  # that share a fact
MAX_STARTS = 100  # of paths
MAX_MIDDLES = 20
MAX_KINDS = 50  # of paths: between two of a few things with many relations there are hundreds, each with its count
SHOWN = 3
MIN_LIFT = 2.0
# What a curator can go by: a case or two are no rule, and a rule that may hold once in ten times is none to follow.
MIN_CASES = 3
LEAST_SHARE = 0.25


@dataclass(frozen=True)
class Reason:
    """`count` of `of` cases speak for the fact; `facts` are those of the graph that it rests on here, as names."""

    kind: str
    text: str
    count: int
    of: int
    facts: tuple[tuple[str, str, str], ...]
    num_paths: int = 1


class ReasonFinder:
    """Finds reasons in one graph; supports of rules that come up again are kept."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = kg
        self._rules = rules_of(kg)
        self._supports: dict[tuple[int, ...], tuple[int, int]] = {}

    def find(self, head: int, relation: int, tail: int, limit: int = 5) -> list[Reason]:
        """The best reasons for (head, relation, tail), best first. The fact itself is no reason."""
        found = list(self._around(head, relation, tail))
        return sorted(found, key=lambda reason: (-float(at_least(reason.count, reason.of)), reason.text))[:limit]

    def has_one_to_go_by(self, head: int, relation: int, tail: int, cases: int = MIN_CASES) -> bool:
        """Whether some reason has cases enough to be one; looks no further than the first."""
        return any(
            reason.count >= cases and float(at_least(reason.count, reason.of)) >= LEAST_SHARE
            for reason in self._around(head, relation, tail)
        )

    def _around(self, head: int, relation: int, tail: int) -> Iterator[Reason]:
        """All reasons with a case or more, those that are found fastest first."""
        opposite = inverse_of(relation, self._kg.num_relations)
        kinds = (
            self._other_links(head, relation, tail),
            self._alike(head, relation, tail, head_side=True),
            self._alike(tail, opposite, head, head_side=False),
            self._paths(head, relation, tail),
        )
        return (reason for kind in kinds for reason in kind if reason.count > 0)

    def _other_links(self, head: int, relation: int, tail: int) -> Iterator[Reason]:
        num = self._kg.num_relations
        for slot in self._slots(head):
            if slot == relation or not (self._kg.answers(head, slot) == tail).any():
                continue
            if slot == inverse_of(relation, num) and head == tail:
                continue
            count, of = self._link_support(relation, slot)
            name, other = self._kg.relations[relation], self._kg.relations[direct_of(slot, num)]
            body = f"y «{other}» x" if is_inverse(slot, num) else f"x «{other}» y"
            text = f"where {body}, also x «{name}» y in {count:,} of {of:,} cases"
            yield Reason("other link", text, count, of, (self._fact(head, slot, tail),))

    def _alike(self, end: int, asked: int, answer: int, *, head_side: bool) -> Iterator[Reason]:
        """Things that share a fact with one end: how many of them stand in the same relation to the other end."""
        kg, num = self._kg, self._kg.num_relations
        same = kg.answers(answer, inverse_of(asked, num)).numpy()
        same = same[same != end]
        usual = len(same) / max(kg.num_entities, 1)
        name, there = kg.relations[direct_of(asked, num)], kg.entities[answer]
        for slot, shared in self._facts_of(end):
            if (slot, shared) == (asked, answer):
                continue
            alike = kg.answers(shared, inverse_of(slot, num)).numpy()[:MAX_THINGS]
            alike = alike[alike != end]
            count = int(np.isin(alike, same).sum())
            if not count or at_least(count, len(alike)) <= MIN_LIFT * usual:
                continue
            things = f"{count:,} of {len(alike):,} other things {self._with(slot, shared)}"
            text = f"{things} also «{name}» {there}" if head_side else f"{there} «{name}» {things}"
            examples = [self._fact(int(alike[i]), asked, answer) for i in np.flatnonzero(np.isin(alike, same))[:SHOWN]]
            facts = (self._fact(end, slot, shared), *examples)
            yield Reason("alike heads" if head_side else "alike tails", text, count, len(alike), facts)

    def _paths(self, head: int, relation: int, tail: int) -> Iterator[Reason]:
        """Paths of two facts, one reason for each pair of relations that they take."""
        kg, num = self._kg, self._kg.num_relations
        middles: dict[tuple[int, int], list[int]] = {}
        to_tail: dict[int, list[int]] = {}
        for slot, middle in self._facts_of(tail):
            to_tail.setdefault(middle, []).append(self._one_way(inverse_of(slot, num)))
        for first, middle in self._facts_of(head):
            if middle in (head, tail):
                continue
            for second in to_tail.get(middle, ()):
                through = middles.setdefault((self._one_way(first), second), [])
                if middle not in through:
                    through.append(middle)
        most_paths_first = sorted(middles.items(), key=lambda kind: -len(kind[1]))
        for (first, second), through in most_paths_first[:MAX_KINDS]:
            count, of = self._path_support(relation, first, second)
            names = [kg.entities[middle] for middle in through[:SHOWN]]
            more = f" and {len(through) - SHOWN} more" if len(through) > SHOWN else ""
            body = f"{self._step('x', first, 'y')} and {self._step('y', second, 'z')}"
            text = f"where {body}, also x «{kg.relations[relation]}» z in {count:,} of {of:,} cases"
            facts = [
                fact
                for middle in through[:SHOWN]
                for fact in (self._fact(head, first, middle), self._fact(middle, second, tail))
            ]
            yield Reason(
                "path", f"{text} (here through {', '.join(names)}{more})", count, of, tuple(facts), len(through)
            )

    def _one_way(self, slot: int) -> int:
        """A symmetric relation is the same whichever way it is read."""
        direct = direct_of(slot, self._kg.num_relations)
        return direct if self._rules.is_symmetric(direct) else slot

    def _link_support(self, relation: int, slot: int) -> tuple[int, int]:
        key = (relation, slot)
        if key not in self._supports:
            pairs = self._pairs(slot)
            held = self._has(pairs[:, 0], relation, pairs[:, 1])
            self._supports[key] = (int(held.sum()), len(pairs))
        return self._supports[key]

    def _path_support(self, relation: int, first: int, second: int) -> tuple[int, int]:
        key = (relation, first, second)
        if key not in self._supports:
            starts = np.unique(self._pairs(first)[:, 0])
            starts = starts[np.linspace(0, len(starts) - 1, min(len(starts), MAX_STARTS)).astype(int)]
            first_row, middle = self._ends(starts, first)
            second_row, end = self._ends(middle, second)
            start, num = starts[first_row[second_row]], np.int64(self._kg.num_entities)
            start, end = np.divmod(np.unique((start * num + end)[start != end]), num)
            held = self._has(start, relation, end)
            self._supports[key] = (int(held.sum()), len(end))
        return self._supports[key]

    def _ends(self, nodes: IntArray, slot: int) -> tuple[IntArray, IntArray]:
        """Where facts of a relation id lead, a bounded number from each node: the row of the node, and the end."""
        edges, node = self._kg.edges, torch.from_numpy(np.ascontiguousarray(nodes))
        if not edges.num_groups:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        last = edges.node_ptr[node + 1]
        group = bisect(edges.group_type, edges.node_ptr[node], last, torch.full_like(node, slot))
        is_there = group < last
        group = torch.where(is_there, group, 0)
        is_there &= edges.group_type[group] == slot
        size = (edges.group_ptr[group + 1] - edges.group_ptr[group]).clamp(max=MAX_MIDDLES) * is_there
        row = torch.repeat_interleave(torch.arange(len(node)), size)
        within = torch.arange(len(row)) - torch.repeat_interleave(size.cumsum(0) - size, size)
        return row.numpy(), edges.neighbour[edges.group_ptr[group][row] + within].long().numpy()

    def _pairs(self, slot: int) -> IntArray:
        """(from, to) of the facts of a relation id, a bounded number of them."""
        if isinstance(self._rules, SampledRules):
            return self._rules.sample.pairs(slot, MAX_THINGS, MAX_FACTS)
        start, end = self._rules.closures.pairs(slot)
        rows = np.unique(np.linspace(0, len(start) - 1, min(len(start), MAX_THINGS)).astype(np.int64))
        return np.stack([start[rows], end[rows]], axis=1)

    def _has(self, head: IntArray, relation: int, tail: IntArray) -> NDArray[np.bool_]:
        if not len(head):
            return np.zeros(0, dtype=bool)
        ends = torch.from_numpy(np.ascontiguousarray(head)), torch.from_numpy(np.ascontiguousarray(tail))
        held = self._kg.edges.has(ends[0], torch.full_like(ends[0], relation), ends[1])
        return np.asarray(held.numpy(), dtype=bool)

    def _slots(self, entity: int) -> list[int]:
        edges = self._kg.edges
        return edges.group_type[int(edges.node_ptr[entity]) : int(edges.node_ptr[entity + 1])].tolist()

    def _facts_of(self, entity: int) -> list[tuple[int, int]]:
        """(relation id, other end) of the facts of an entity, a few of each relation where there are many."""
        slots = self._slots(entity)
        each = max(1, MAX_FACTS // max(len(slots), 1))
        return [(slot, other) for slot in slots for other in self._kg.answers(entity, slot)[:each].tolist()]

    def _fact(self, source: int, slot: int, other: int) -> tuple[str, str, str]:
        head, relation, tail = fact_of(source, slot, other, self._kg.num_relations)
        return self._kg.entities[head], self._kg.relations[relation], self._kg.entities[tail]

    def _with(self, slot: int, shared: int) -> str:
        name, other = self._kg.relations[direct_of(slot, self._kg.num_relations)], self._kg.entities[shared]
        return f"that {other} «{name}»" if is_inverse(slot, self._kg.num_relations) else f"that «{name}» {other}"

    def _step(self, start: str, slot: int, end: str) -> str:
        name = self._kg.relations[direct_of(slot, self._kg.num_relations)]
        back = is_inverse(slot, self._kg.num_relations)
        return f"{end} «{name}» {start}" if back else f"{start} «{name}» {end}"
