"""Known true answers per query as sorted arrays: what filtered ranking leaves out, what negatives must avoid.

A query is (source, relation) with relation ids 0..2R-1; r + R asks for the heads of r (MODEL.md §1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """Sorted distinct query keys; the answers of query i are `answer[ptr[i]:ptr[i+1]]`, sorted and distinct."""

    num_relations: int
    key: IntArray
    ptr: IntArray
    answer: IntArray

    @classmethod
    def build(cls, triples: IntArray, num_entities: int, num_relations: int) -> KnownAnswers:
        """From triples (head, relation, tail), read in both directions; repeated triples count once."""
        head, relation, tail = np.asarray(triples, dtype=np.int64).reshape(-1, 3).T
        source = np.concatenate((head, tail))
        asked = np.concatenate((relation, relation + num_relations))
        pair = (source * (2 * num_relations) + asked) * num_entities + np.concatenate((tail, head))
        query, answer = divmod(np.unique(pair), max(num_entities, 1))
        key, start = np.unique(query, return_index=True)
        return cls(num_relations, key, np.append(start, len(query)).astype(np.int64), answer)

    def of(self, source: IntArray, relation: IntArray) -> tuple[IntArray, IntArray]:
        """All known answers of a batch of queries, as (row in the batch, entity); rows ascend."""
        wanted = source * (2 * self.num_relations) + relation
        at = np.searchsorted(self.key, wanted)
        found = np.zeros(len(wanted), dtype=bool)
        inside = at < len(self.key)
        found[inside] = self.key[at[inside]] == wanted[inside]
        first = np.where(found, self.ptr[np.minimum(at, len(self.key))], 0)
        last = np.where(found, self.ptr[np.minimum(at + 1, len(self.key))], 0)
        count = last - first
        row = np.repeat(np.arange(len(wanted)), count)
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        return row, self.answer[np.repeat(first, count) + within]
