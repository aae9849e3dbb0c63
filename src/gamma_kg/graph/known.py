"""Known true answers per query: what filtered ranking leaves out, what wrong answers for training must avoid.

A query is (source, relation) with relation ids 0..2R-1; r + R asks for the heads of r (docs/model.md §1). B queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """One integer per known (source, relation or inverse, answer), sorted: each fact once, read from both ends."""

    num_entities: int
    num_relations: int
    keys: IntArray

    @classmethod
    def build(cls, triples: IntArray, num_entities: int, num_relations: int) -> KnownAnswers:
        """From triples (head, relation, tail), read in both directions; repeated triples count once."""
        head, relation, tail = np.asarray(triples, dtype=np.int64).reshape(-1, 3).T
        nothing = cls(num_entities, num_relations, np.empty(0, dtype=np.int64))
        both = (nothing.key_of(head, relation, tail), nothing.key_of(tail, relation + num_relations, head))
        return cls(num_entities, num_relations, np.unique(np.concatenate(both)))

    def key_of(self, source: IntArray, relation: IntArray, answer: IntArray | int = 0) -> IntArray:
        """The integer that stands for a fact. Those of a query's answers lie together, in the order of the answers."""
        return (source * (2 * self.num_relations) + relation) * self.num_entities + answer

    def of(self, source_B: IntArray, relation_B: IntArray) -> tuple[IntArray, IntArray]:
        """All known answers of the queries, flat: (which query, answer), in order of query, then of answer."""
        first_B = self.key_of(source_B, relation_B)
        low_B = np.searchsorted(self.keys, first_B)
        count_B = np.searchsorted(self.keys, first_B + self.num_entities) - low_B
        owner = np.repeat(np.arange(len(first_B)), count_B)
        position = np.arange(len(owner)) - np.repeat(np.cumsum(count_B) - count_B, count_B)
        return owner, self.keys[low_B[owner] + position] - first_B[owner]
