"""Rules of a graph too large to be counted whole: symmetry and loops from a sample of its facts, nothing else.

Whether a fact's reverse is there is looked up in the whole graph, so the counts are true of the sample.
"""

from __future__ import annotations

import weakref
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, inverse_of
from gamma_kg.rules.patterns import Patterns
from gamma_kg.rules.slots import Slots

BLOCK = 1 << 18
NUM_BLOCKS = 8


class SampledRules:
    """The part of `Rules` that costs a query its own facts only."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg = weakref.ref(kg)
        self.num_entities, self.num_relations = kg.num_entities, kg.num_relations
        self.patterns = _sampled(kg)

    @cached_property
    def slots(self) -> Slots:
        """What `complete` needs of the graph; it costs the whole graph, and is made only for that."""
        kg = self._kg()
        assert kg is not None
        return Slots(kg)

    def without(self, source: int, relation: int) -> Tensor:
        """Ids of candidates that contradict a pattern, int64."""
        kg = self._kg()
        assert kg is not None
        direct, ids = direct_of(relation, self.num_relations), []
        if self.patterns.is_never_symmetric[direct]:
            ids.append(kg.answers(source, inverse_of(relation, self.num_relations)))
        if self.patterns.is_irreflexive[direct]:
            ids.append(torch.tensor([source]))
        if not ids:
            return torch.empty(0, dtype=torch.long)
        found: Tensor = torch.cat(ids).unique()
        return found[~torch.isin(found, kg.answers(source, relation))]

    def blocked(self, source: int, relation: int) -> NDArray[np.bool_]:
        """The same as a mask, (N,)."""
        blocked = np.zeros(self.num_entities, dtype=bool)
        blocked[self.without(source, relation).numpy()] = True
        return blocked

    def why_not(self, source: int, relation: int, answer: int) -> str | None:
        if answer not in self.without(source, relation).tolist():
            return None
        kg = self._kg()
        assert kg is not None
        name = kg.relations[direct_of(relation, self.num_relations)]
        if source == answer:
            return f"{name} never links a thing with itself"
        return f"the reverse is a fact, and {name} never holds both ways"

    def inverse(self, relation: int) -> int:
        return inverse_of(relation, self.num_relations)

    def against_another(self, source: int, relation: int) -> str | None:
        return None


def _sampled(kg: KnowledgeGraph) -> Patterns:
    """Counts over a few blocks of facts; those that would need all facts stay 0, which proves nothing."""
    facts, proper, reversed_, loops = (np.zeros(kg.num_relations, dtype=np.int64) for _ in range(4))
    for number, block in enumerate(kg.triple_blocks(BLOCK)):
        if number == NUM_BLOCKS:
            break
        head, relation, tail = block.T
        is_loop = head == tail
        has_reverse = kg.edges.has(tail, relation, head) & ~is_loop
        for counts, chosen in ((facts, head >= 0), (proper, ~is_loop), (reversed_, has_reverse), (loops, is_loop)):
            counts += np.bincount(relation[chosen].numpy(), minlength=kg.num_relations)
    none = np.zeros(kg.num_relations, dtype=np.int64)
    return Patterns(facts, proper, reversed_, loops, none, none, none, none, none, none)
