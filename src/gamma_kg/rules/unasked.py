"""What nobody should be bothered with unasked, though no fact contradicts it.

A habit is no proof: whoever asks for the part of a thing may be told that it is part of its own kind. But a proposal
that breaks with what the graph's makers do all along is not worth a curator's time.

| left out                                              | the habit, counted                                         |
|-------------------------------------------------------|------------------------------------------------------------|
| a second value                                        | few have two                                               |
| a first value where nothing without one is fit for it | few have two                                               |
| the country of a country                              | a relation from one sort of things to another (`patterns`) |
| a second value beside the narrowest one               | few have two (`narrowest`)                                 |
| what is to be said of other ontologies' terms         | none: that is for their own makers                         |
| what comes under a class that is defined              | none: that is for a reasoner                               |
| what would make a stored fact superfluous: a narrower | facts that another one gives already are rare              |
| value, the same of a wider class                      | (`implied` has what gives what)                            |
| a link between a thing and its kind or its kind's kind| facts between two of one line are rare                     |
| the first class under two sisters                     | such facts are rare (`sisters`)                            |
| a thing from elsewhere than all that stand there      | those that do come under one class (`domains`)             |
| what most classes below lack, what tells a sister     | values are handed down, sisters are told apart (`values`)  |
| apart                                                 |                                                            |

N entities.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.inverse import direct_of, is_inverse
from gamma_kg.rules.bounds import at_most
from gamma_kg.rules.domains import Domains
from gamma_kg.rules.narrowest import Narrowest
from gamma_kg.rules.sisters import Sisters
from gamma_kg.rules.values import Values

if TYPE_CHECKING:
    from gamma_kg.rules.rules import Rules

BoolArray = NDArray[np.bool_]
# Facts of each relation that are looked at. A habit is one if it holds for so many of the relation's own facts, and
# surely for so many of all that the same makers wrote: few relations have enough facts to show one alone.
LOOKED_AT = 300
MOST_RELATIONS = 200
MAX_EXCEPTIONS = 0.1
# Of those that have a value, so few may have a second where none is proposed.
MAX_SEVERAL = 0.05
Seen = tuple[int, int]  # exceptions, facts looked at


class Unasked:
    """Habits of one graph, asked query by query."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.superfluous = lru_cache(maxsize=None)(self._superfluous)
        self.of_one_line = lru_cache(maxsize=None)(self._of_one_line)
        self.domains = Domains(rules.closures, rules.axioms)
        self.narrowest = Narrowest(rules.closures)
        self.sisters = Sisters(rules.closures, rules.axioms.wider)
        self.values = Values(rules.closures, rules.axioms.up)

    def out_of_place(self, slot: int) -> BoolArray:
        """Entities of which nobody would say that they stand in a slot, (N,)."""
        rules, found = self._rules, np.zeros(self._rules.num_entities, dtype=bool)
        is_read_back = is_inverse(slot, rules.num_relations)
        others = (
            rules.of_the_other_end(slot),
            None if is_read_back else rules.axioms.is_outside,
            # An interesting pizza has three toppings: which pizzas have is counted, not guessed.
            rules.axioms.is_defined if is_read_back and rules.direct(slot) in rules.axioms.up else None,
            self.domains.outside(slot),
        )
        for outside in others:
            if outside is not None:
                found |= outside
        return found

    def is_unlike_the_rest(self, head: int, direct: int, tail: int) -> bool:
        """Whether a fact breaks with what the classes around its head show."""
        if direct in self._rules.axioms.wider and self.sisters.would_be_first(head, tail):
            return True
        return self.narrowest.would_be_second(head, direct, tail) or self.values.says_no(head, direct, tail)

    def has_its_own(self, slot: int) -> BoolArray:
        """Entities that fill a slot once, where few fill it twice: nobody would look for a second, (N,)."""
        count = self._rules.slots.count(slot)
        filled, several = int((count > 0).sum()), int((count > 1).sum())
        is_rare = several <= MAX_SEVERAL * filled and float(at_most(several, filled)) <= MAX_EXCEPTIONS
        return np.asarray((count > 0) & is_rare)

    def can_be_answered(self, relation: int) -> bool:
        """Whether anything could be a new answer to queries of a relation id: no city lacks an airport where each has
        its one city, and nothing else is like an airport."""
        rules = self._rules
        role = rules.inverse(relation)
        if not rules.has_single_answers(role) and not self.has_its_own(role).any():
            return True
        free = np.flatnonzero(rules.slots.count(role) == 0)
        fit = free[rules.slots.are_fit(role, free)]
        return bool((~self.out_of_place(role)[fit] & ~rules.slots.are_excluded(role, fit)).any())

    def blocked(self, source: int, relation: int) -> BoolArray:
        """Answers to the query that are not worth proposing, (N,)."""
        rules = self._rules
        direct = direct_of(relation, rules.num_relations)
        blocked = self.out_of_place(rules.inverse(relation)) | self.has_its_own(rules.inverse(relation))
        if self.has_its_own(relation)[source]:
            blocked[:] = True
        if self._is_rare(self.superfluous(direct), self._all_superfluous):
            made_needless = rules.implied.would_give_stored(source, relation)
            if made_needless is not None:
                blocked |= made_needless
        if self._is_rare(self.of_one_line(direct), self._all_of_one_line):
            blocked |= rules.axioms.line(source)
        return blocked

    def _is_rare(self, own: Seen, of_all: Seen) -> bool:
        exceptions, of = own
        return of > 0 and exceptions <= MAX_EXCEPTIONS * of and float(at_most(*of_all)) <= MAX_EXCEPTIONS

    @cached_property
    def _all_superfluous(self) -> Seen:
        return self._sum(self.superfluous)

    @cached_property
    def _all_of_one_line(self) -> Seen:
        return self._sum(self.of_one_line)

    def _sum(self, count: Callable[[int], Seen]) -> Seen:
        seen = [count(direct) for direct in range(min(self._rules.num_relations, MOST_RELATIONS))]
        return sum(found for found, _ in seen), sum(of for _, of in seen)

    def _superfluous(self, direct: int) -> Seen:
        """Facts that another stored one gives."""
        implied = self._rules.implied
        # A narrower type is what a curator may be looking for.
        if direct in self._rules.axioms.types or implied.ways(direct) is None:
            return 0, 0
        facts = self._looked_at(direct)
        return sum(implied.is_given_by_another(head, direct, tail) for head, tail in facts), len(facts)

    def _of_one_line(self, direct: int) -> Seen:
        """Facts between a thing and something above or below it, among those whose two ends have a place there."""
        axioms = self._rules.axioms
        if direct in (*axioms.types, *axioms.wider):
            return 0, 0
        is_placed = axioms.is_placed
        facts = [(head, tail) for head, tail in self._looked_at(direct) if is_placed[head] and is_placed[tail]]
        return sum(bool(axioms.line(head)[tail]) for head, tail in facts if head != tail), len(facts)

    def _looked_at(self, direct: int) -> list[tuple[int, int]]:
        head, tail = self._rules.closures.pairs(direct)
        rows = np.unique(np.linspace(0, len(head) - 1, min(len(head), LOOKED_AT)).astype(np.int64))
        return list(zip(head[rows].tolist(), tail[rows].tolist(), strict=True))
