"""Which candidates contradict what the graph shows, and why.

A candidate of the query (source, relation) stands for a fact. The fact contradicts the graph if it reverses a fact of
a relation that never holds both ways, closes a cycle in a relation without cycles, links a thing with itself where
none is, gives a second value where there is only one, or puts a thing into a role that its other roles rule out;
or if it breaks an axiom of the ontology (`rules/axioms.py`). Blocked with these are facts that stored ones give already
(`rules/implied.py`). Known facts never count as contradictions. N entities.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, fact_of, inverse_of, is_inverse
from gamma_kg.rules.axioms import Axioms, is_kept_to
from gamma_kg.rules.closure import Closures
from gamma_kg.rules.implied import Implied
from gamma_kg.rules.large import SampledRules
from gamma_kg.rules.pairs import PairExclusions
from gamma_kg.rules.patterns import Patterns, find_patterns
from gamma_kg.rules.slots import Slots
from gamma_kg.rules.unasked import Unasked

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

# Beyond so many facts rules come from a sample (rules/large.py): no answer waits until all of them were looked through.
MOST_FACTS = 2_000_000
# A hierarchy of so many facts has a top if one thing has more than this share of all others under it.
MIN_FACTS_UNDER_TOP, MIN_UNDER_TOP = 50, 0.5
MOST_TOPS = 8


class Rules:
    """The patterns of one graph, asked query by query."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        # Not the graph itself: rules are kept as long as it lives, and no longer.
        self._triples: IntArray = kg.triples.numpy()
        self.num_entities, self.num_relations = kg.num_entities, kg.num_relations
        self.entities, self.relations = kg.entities, kg.relations
        self.slots = Slots(kg)
        self.axioms = Axioms(kg, self.closures)
        self.top = lru_cache(maxsize=None)(self._find_top)

    @cached_property
    def patterns(self) -> Patterns:
        return find_patterns(self._triples, self.num_entities, self.num_relations)

    @cached_property
    def closures(self) -> Closures:
        return Closures(self._triples, self.num_entities, self.num_relations)

    @cached_property
    def pairs(self) -> PairExclusions:
        return PairExclusions(self._triples, self.num_entities, self.num_relations)

    @cached_property
    def unasked(self) -> Unasked:
        """What is not proposed to those who did not ask."""
        return Unasked(self)

    @cached_property
    def implied(self) -> Implied:
        acyclic = frozenset(r for r in range(self.num_relations) if self.is_acyclic(r))
        return Implied(self.closures, self.axioms, acyclic)

    def blocked(self, source: int, relation: int, *, implied: bool = True) -> BoolArray:
        """Candidates of the query that contradict a pattern, and with `implied` those that are true already, (N,)."""
        direct, inverse = self.direct(relation), self.inverse(relation)
        is_read_back = is_inverse(relation, self.num_relations)
        blocked = self.slots.excluded(inverse).copy()
        axioms = self.axioms
        for others in (
            axioms.against(inverse),
            axioms.sorts.others(inverse),
            axioms.disjoint_with(source, relation),
            axioms.is_blank,
        ):
            if others is not None:
                blocked |= others
        if self.has_single_answers(inverse):
            blocked |= self.slots.count(inverse) > 0
        for other in self._between(source, relation):
            blocked[self._answers(source, other)] = True
        top = self.top(direct)
        if top is not None and is_read_back:
            blocked[top] = True
        if self.is_acyclic(direct):
            itself = blocked[source]
            blocked |= self.closures.reach(source, inverse)
            blocked[source] = itself
        elif self.is_never_symmetric(direct):
            blocked[self._answers(source, inverse)] = True
        if self.is_irreflexive(direct):
            blocked[source] = True
        follows = self.implied.by(source, relation, meant=implied)
        if follows is not None:
            blocked |= follows
        blocked[self._answers(source, relation)] = False
        return blocked

    def without(
        self, source: int, relation: int, best: Callable[[int], Tensor] | None = None, *, implied: bool = True
    ) -> Tensor:
        """The same as ids, int64; `best` is for graphs that are too large to look at all candidates."""
        return torch.from_numpy(np.flatnonzero(self.blocked(source, relation, implied=implied)))

    def why_not(self, source: int, relation: int, answer: int) -> str | None:
        """What speaks against a fact that is not known, in words."""
        direct, inverse = self.direct(relation), self.inverse(relation)
        head, _, tail = fact_of(source, relation, answer, self.num_relations)
        name, patterns = self.relations[direct], self.patterns
        if answer in self._answers(source, relation):
            return None
        if source == answer:
            if self.is_irreflexive(direct):
                return self._said(f"{name} never links a thing with itself", patterns.loops, patterns.facts, direct)
        elif self.is_never_symmetric(direct) and answer in self._answers(source, inverse):
            text = f"the reverse is a fact, and {name} never holds both ways"
            return self._said(text, patterns.reversed, patterns.proper, direct)
        elif self.is_acyclic(direct) and self.closures.reach(source, inverse)[answer]:
            text = f"it would close a cycle, and {name} has none"
            return self._said(text, patterns.cyclic, patterns.leading, direct)
        against = self._against_axioms(source, relation, answer) or self._against_pair(head, direct, tail)
        if against is not None:
            return against
        against = self.against_another(source, relation) or self.against_another(answer, inverse)
        if against is not None:
            return against
        for slot, entity in ((direct, head), (self.inverse(direct), tail)):
            reason = self._excluding_role(slot, entity)
            if reason is not None:
                return reason
        return self._why_implied(head, direct, tail)

    def against_another(self, source: int, relation: int) -> str | None:
        """What speaks against any further answer to the query, in words."""
        if not is_inverse(relation, self.num_relations) and self.top(relation) == source:
            return f"{self.entities[source]} is at the top of {self.relations[relation]}"
        if not self.has_single_answers(relation):
            return None
        known = self._answers(source, relation)
        if not len(known):
            return None
        single = "one head per tail" if is_inverse(relation, self.num_relations) else "one tail per head"
        name, thing = self.relations[self.direct(relation)], self.entities[source]
        found = f"{thing} has {self.entities[int(known[0])]} already"
        return f"{found}, and {name} has {single} ({self._several(relation)})"

    def of_the_other_end(self, relation: int) -> BoolArray | None:
        """Entities at the other end of a relation that leads from one sort of things to another, (N,): no country has
        a country. A habit of the graph and no contradiction, so it counts only for what is proposed unasked."""
        return self.slots.count(self.inverse(relation)) > 0 if self.never_leads_on(self.direct(relation)) else None

    def describe(self, direct: int) -> list[str]:
        """What is known of a relation, in words, each with its count."""
        return self.patterns.describe(direct)

    def is_symmetric(self, direct: int) -> bool:
        return bool(self.patterns.is_symmetric[direct])

    def has_loops(self, direct: int) -> bool:
        """Whether a fact of the relation links a thing with itself."""
        return bool(self.patterns.loops[direct])

    def is_never_symmetric(self, direct: int) -> bool:
        return bool(self.patterns.is_never_symmetric[direct]) or self.axioms.says("asymmetric", direct)

    def is_acyclic(self, direct: int) -> bool:
        is_part = direct in self.axioms.parts and not self.patterns.cyclic[direct]
        return bool(self.patterns.is_acyclic[direct]) or direct in self.axioms.acyclic or is_part

    def never_leads_on(self, direct: int) -> bool:
        """Whether the relation leads from one sort of things to another, so that its facts form no chains."""
        return bool(self.patterns.never_leads_on[direct])

    def _find_top(self, direct: int) -> int | None:
        """The one thing that most others are under, in a relation without cycles."""
        head, tail = self.closures.pairs(direct)
        if not self.is_acyclic(direct) or len(tail) < MIN_FACTS_UNDER_TOP:
            return None
        tops, count = np.unique(tail[~np.isin(tail, head)], return_counts=True)
        for top in tops[np.argsort(-count, kind="stable")][:MOST_TOPS].tolist():
            under = int(self.closures.reach(top, self.inverse(direct)).sum())
            if under > MIN_UNDER_TOP * len(np.unique(np.concatenate([head, tail]))):
                return int(top)
        return None

    def is_irreflexive(self, direct: int) -> bool:
        declared = self.axioms.says("irreflexive", direct) or self.axioms.says("asymmetric", direct)
        return bool(self.patterns.is_irreflexive[direct]) or declared or direct in self.axioms.acyclic

    def has_single_answers(self, relation: int) -> bool:
        """Whether a query with this relation id has at most one answer."""
        is_read_back = is_inverse(relation, self.num_relations)
        patterns, direct = self.patterns, self.direct(relation)
        holds = patterns.is_inverse_functional if is_read_back else patterns.is_functional
        if holds[direct]:
            return True
        # What holds of each member of a class, one olive on one pizza, does not hold of the class of olives.
        if is_read_back and self.axioms.says("some", direct):
            return False
        ends, several = (
            (patterns.tails, patterns.tails_several) if is_read_back else (patterns.heads, patterns.heads_several)
        )
        declared = self.axioms.says("inverse functional" if is_read_back else "functional", direct)
        return declared and is_kept_to(int(ends[direct] - several[direct]), int(ends[direct]))

    def inverse(self, relation: int) -> int:
        return inverse_of(relation, self.num_relations)

    def direct(self, relation: int) -> int:
        return direct_of(relation, self.num_relations)

    def _against_axioms(self, source: int, relation: int, answer: int) -> str | None:
        axioms, direct = self.axioms, self.direct(relation)
        if axioms.is_blank is not None and (axioms.is_blank[source] or axioms.is_blank[answer]):
            return "a blank node has no name that a fact could be told by"
        head, _, tail = fact_of(source, relation, answer, self.num_relations)
        for slot, entity, kind in ((direct, head, "domain"), (self.inverse(direct), tail, "range")):
            of_another = axioms.sorts.why_other(slot, entity)
            if of_another is not None:
                what, others = of_another
                return f"{self.entities[entity]} is {what}, and {self.relations[direct]} is about {others}"
            outside = axioms.against(slot)
            if outside is not None and outside[entity]:
                wanted = self.entities[axioms.ends[slot]]
                return f"{self.entities[entity]} is no {wanted}, the {kind} of {self.relations[direct]}"
        disjoint = axioms.disjoint_with(head, direct)
        if disjoint is not None and disjoint[tail]:
            return self._why_disjoint(head, tail)
        return None

    def _between(self, source: int, relation: int) -> list[int]:
        """Relation ids that link the source with something, and rule the relation out between the same two."""
        roles = self.slots.roles(source)
        found: list[int] = roles[self.pairs.excluding(relation)[roles]].tolist()
        return found

    def _against_pair(self, head: int, direct: int, tail: int) -> str | None:
        for other in self._between(head, direct):
            if tail in self._answers(head, other):
                first, second = (head, tail) if other < self.num_relations else (tail, head)
                name = self.relations[self.direct(other)]
                stored = f"{self.entities[first]} {name} {self.entities[second]} is a fact"
                both = _of(*self.pairs.counts(direct, other))
                return f"{stored}, and {both} such pairs are linked by {self.relations[direct]} too"
        return None

    def _why_disjoint(self, head: int, tail: int) -> str:
        pair = self.axioms.excluding_classes(head, tail)
        if pair is None:
            return f"the classes of {self.entities[head]} and {self.entities[tail]} are disjoint"
        one, other = (self.entities[end] for end in pair)
        under = f"{self.entities[head]} is under {one} and {self.entities[tail]} under {other}"
        return f"{under}: {_of(*self.axioms.apart[pair])} things are under both"

    def _why_implied(self, head: int, direct: int, tail: int) -> str | None:
        if self.implied.are_equal(head, direct, tail):
            return f"it follows already: {self.entities[head]} and {self.entities[tail]} are declared equivalent"
        stored = self.implied.why(head, direct, tail)
        ways = self.implied.ways(direct)
        if stored is None or ways is None:
            return None
        name, (from_, to) = self.relations[direct], (self.entities[end] for end in stored)
        parts = [f"{self.entities[head]} comes under {from_}"] if stored[0] != head else []
        if direct in ways.tails and direct not in self.axioms.wider:
            parts.append(f"{name} leads on from {to} to {self.entities[tail]}")
        elif stored[1] != tail:
            parts.append(f"{to} comes under {self.entities[tail]}")
        text = f"it follows already from {from_} {name} {to}: {' and '.join(parts)}"
        return text if ways.is_meant else f"{text}, and such facts are not written down ({_of(*ways.shortcuts)})"

    def _said(self, text: str, count: IntArray, of: IntArray, direct: int) -> str:
        return f"{text} ({_of(count[direct], of[direct])})"

    def _several(self, slot: int) -> str:
        patterns, direct = self.patterns, self.direct(slot)
        if is_inverse(slot, self.num_relations):
            return f"{_of(patterns.tails_several[direct], patterns.tails[direct])} have several"
        return f"{_of(patterns.heads_several[direct], patterns.heads[direct])} have several"

    def _excluding_role(self, slot: int, entity: int) -> str | None:
        if not self.slots.excluded(slot)[entity]:
            return None
        both, excludes = self.slots.excluding_roles(slot)
        roles = self.slots.roles(entity)
        worst = max(roles[excludes[roles]].tolist(), key=self.slots.num_fillers)
        seen = _of(both[worst], self.slots.num_fillers(worst))
        return f"{self._role(worst)}, as {self.entities[entity]} is, is {self._role(slot)} in {seen} cases"

    def _role(self, slot: int) -> str:
        end = "tail" if is_inverse(slot, self.num_relations) else "head"
        return f"a {end} of {self.relations[self.direct(slot)]}"

    def _answers(self, source: int, relation: int) -> IntArray:
        return self.closures.ends(source, relation)


_found: weakref.WeakKeyDictionary[KnowledgeGraph, Rules | SampledRules] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def rules_of(kg: KnowledgeGraph) -> Rules | SampledRules:
    """The rules of a graph, found once and kept as long as the graph."""
    with _lock:
        if kg not in _found:
            _found[kg] = Rules(kg) if kg.num_triples <= MOST_FACTS else SampledRules(kg)
        return _found[kg]


def _of(count: float, of: float) -> str:
    return f"{int(count):,} of {int(of):,}"
