"""Rules of a graph too large to be counted whole: from a sample of its entities, each relation when it is asked for.

A verdict needs a few hundred cases (`rules/bounds.py`), which a sample has of every relation that is not rare. What
stands against a candidate is looked up in the whole graph, for the best candidates of a query. Left out: cycles, which
a sample can't rule out, classes of an ontology, and what follows already; kinds of properties that it declares count.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, inverse_of, is_inverse
from gamma_kg.rules.axioms import declared_kinds
from gamma_kg.rules.patterns import Patterns
from gamma_kg.rules.sample import EntitySample
from gamma_kg.rules.sampled_slots import SampledSlots

IntArray = NDArray[np.int64]
# Facts of a relation whose reverse is looked up, and how many of them one head may give.
FACTS, FACTS_OF_HEAD = 1_024, 8
# The best candidates of a query whose roles are looked at.
LOOKED_AT = 256
KEPT_RELATIONS = 4_096


@dataclass(frozen=True)
class Verdicts:
    """What the sample shows of one relation, with the counts behind it."""

    patterns: Patterns  # of this relation alone
    is_symmetric: bool
    is_never_symmetric: bool
    is_irreflexive: bool
    is_functional: bool
    is_inverse_functional: bool


class SampledRules:
    """What `Rules` is for smaller graphs; nothing here costs more than a query does."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = weakref.ref(kg)
        self.num_entities, self.num_relations = kg.num_entities, kg.num_relations
        self.sample = EntitySample(kg.edges)
        self.slots = SampledSlots(kg.edges, self.sample)
        self._kinds = declared_kinds(kg)
        self.verdicts = lru_cache(maxsize=KEPT_RELATIONS)(self._verdicts)

    @property
    def kg(self) -> KnowledgeGraph:
        kg = self._kg()
        assert kg is not None
        return kg

    def without(
        self, source: int, relation: int, best: Callable[[int], Tensor] | None = None, *, implied: bool = True
    ) -> Tensor:
        """Ids of candidates that contradict a pattern, int64: of all for what the source's own facts tell, and of the
        `best` so many for what their own do."""
        verdicts, inverse = self.verdicts(direct_of(relation, self.num_relations)), self.inverse(relation)
        ids = [torch.empty(0, dtype=torch.long)]
        if verdicts.is_never_symmetric:
            ids.append(self.kg.answers(source, inverse))
        if verdicts.is_irreflexive:
            ids.append(torch.tensor([source]))
        if best is not None:
            candidates = best(LOOKED_AT)
            ids.append(candidates[torch.from_numpy(self._against(relation, candidates.numpy()))])
        found: Tensor = torch.cat(ids).unique()
        return found[~torch.isin(found, self.kg.answers(source, relation))]

    def blocked(self, source: int, relation: int) -> NDArray[np.bool_]:
        """The same as a mask, (N,), from what the source's own facts tell."""
        blocked = np.zeros(self.num_entities, dtype=bool)
        blocked[self.without(source, relation).numpy()] = True
        return blocked

    def why_not(self, source: int, relation: int, answer: int) -> str | None:
        """What speaks against a fact that is not known, in words."""
        kg, inverse = self.kg, self.inverse(relation)
        if (kg.answers(source, relation) == answer).any():
            return None
        direct = direct_of(relation, self.num_relations)
        verdicts, name = self.verdicts(direct), kg.relations[direct]
        if source == answer and verdicts.is_irreflexive:
            return f"{name} never links a thing with itself"
        if verdicts.is_never_symmetric and (kg.answers(source, inverse) == answer).any():
            return f"the reverse is a fact, and {name} never holds both ways"
        against = self.against_another(source, relation) or self.against_another(answer, inverse)
        if against is not None:
            return against
        for slot, entity in ((relation, source), (inverse, answer)):
            if self.slots.are_excluded(slot, np.array([entity]))[0]:
                end = "tail" if is_inverse(slot, self.num_relations) else "head"
                return f"things with the other roles of {kg.entities[entity]} are never a {end} of {name}"
        return None

    def against_another(self, source: int, relation: int) -> str | None:
        """What speaks against any further answer to the query, in words."""
        if not self.has_single_answers(relation):
            return None
        kg, known = self.kg, self.kg.answers(source, relation)
        if not len(known):
            return None
        single = "one head per tail" if is_inverse(relation, self.num_relations) else "one tail per head"
        name = kg.relations[direct_of(relation, self.num_relations)]
        return f"{kg.entities[source]} has {kg.entities[int(known[0])]} already, and {name} has {single}"

    def describe(self, direct: int) -> list[str]:
        """What the sample shows of a relation, in words, each with its count there."""
        return self.verdicts(direct).patterns.describe(0)

    def is_symmetric(self, direct: int) -> bool:
        return self.verdicts(direct).is_symmetric

    def is_never_symmetric(self, direct: int) -> bool:
        return self.verdicts(direct).is_never_symmetric

    def has_loops(self, direct: int) -> bool:
        """Whether the sample has a fact of the relation that links a thing with itself."""
        return bool(self.verdicts(direct).patterns.loops[0])

    def has_single_answers(self, relation: int) -> bool:
        """Whether a query with this relation id has at most one answer."""
        verdicts = self.verdicts(direct_of(relation, self.num_relations))
        is_read_back = is_inverse(relation, self.num_relations)
        return verdicts.is_inverse_functional if is_read_back else verdicts.is_functional

    def inverse(self, relation: int) -> int:
        return inverse_of(relation, self.num_relations)

    def _against(self, relation: int, candidate: IntArray) -> NDArray[np.bool_]:
        """Which candidates have a role that rules this one out, or the one value that there can be."""
        inverse = self.inverse(relation)
        against = self.slots.are_excluded(inverse, candidate)
        if self.has_single_answers(inverse):
            against |= self.slots.counts(inverse, candidate) > 0
        return against

    def _verdicts(self, direct: int) -> Verdicts:
        inverse = self.inverse(direct)
        head, tail = self.sample.pairs(direct, FACTS, FACTS_OF_HEAD).T
        edges, relation = self.kg.edges, torch.full((len(head),), direct)
        is_loop = head == tail
        ends = torch.from_numpy(np.ascontiguousarray(head)), torch.from_numpy(np.ascontiguousarray(tail))
        has_reverse = edges.has(ends[1], relation, ends[0]).numpy() & ~is_loop
        fillers, several = self.sample.fillers_S, self.sample.several_S
        counts = (
            len(head), int((~is_loop).sum()), int(has_reverse.sum()), int(is_loop.sum()), 0, 0,
            fillers[direct], several[direct], fillers[inverse], several[inverse],
        )  # fmt: skip
        found = Patterns(*(np.array([count], dtype=np.int64) for count in counts))
        is_asymmetric = self._says("asymmetric", direct)
        is_declared_single = self._says("inverse functional", direct) and not self._says("some", direct)
        return Verdicts(
            found,
            is_symmetric=bool(found.is_symmetric[0]),
            is_never_symmetric=bool(found.is_never_symmetric[0]) or is_asymmetric,
            is_irreflexive=bool(found.is_irreflexive[0]) or is_asymmetric or self._says("irreflexive", direct),
            is_functional=bool(found.is_functional[0]) or self._says("functional", direct),
            is_inverse_functional=bool(found.is_inverse_functional[0]) or is_declared_single,
        )

    def _says(self, kind: str, direct: int) -> bool:
        return direct in self._kinds.get(kind, ())
