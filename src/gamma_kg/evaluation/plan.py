"""From test triples to queries: both directions, every distinct (source, relation) once, in batches of a fixed make-up.

Q ranked answers (a triple in one direction), U distinct queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.benchmark import Split
from gamma_kg.graph.inverse import both_ways, direct_of

IntArray = NDArray[np.int64]

# Entities × queries of one batch. It must not depend on free memory or on the number of processes: the same batches
# give the same scores to the last bit, so results do not depend on how they were computed.
BATCH_ROWS = 1 << 17
LARGEST_BATCH = 256


def draw_triples(size: int, limit: int | None, seed: int) -> IntArray:
    """All of `size` triples, or `limit` of them drawn with the seed, in their order."""
    if limit is None or limit >= size:
        return np.arange(size)
    return np.sort(np.random.default_rng(seed).choice(size, size=limit, replace=False))


@dataclass(frozen=True)
class QueryBatch:
    """Distinct queries and the answers to rank: answer i belongs to query `row[i]` and is number `position[i]` of Q."""

    source: IntArray
    relation: IntArray
    row: IntArray
    answer: IntArray
    position: IntArray


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """What is asked of a split. `triple` is the line in the split's query file, relation ids run to 2R - 1."""

    triple: IntArray
    source: IntArray
    relation: IntArray
    answer: IntArray
    is_head: NDArray[np.bool_]
    _order: IntArray
    _starts: IntArray
    _batch_size: int

    @classmethod
    def build(cls, split: Split, *, tails_only: bool = False, limit: int | None = None, seed: int = 0) -> QueryPlan:
        """Plan all test triples of the split, or `limit` of them drawn with `seed`."""
        triple = draw_triples(len(split.queries), limit, seed)
        head, relation, tail = split.queries[triple].T
        directions = 1 if tails_only else 2
        source, answer, is_head = head, tail, np.zeros(len(head), dtype=bool)
        if not tails_only:
            source, relation, answer = both_ways(split.queries[triple], split.num_relations)
            is_head = np.repeat([False, True], len(head))
        triple = np.tile(triple, directions)
        # Queries of one relation side by side, whichever way it is read: they share the relation's states.
        direct = direct_of(relation, split.num_relations)
        key = (direct * 2 + is_head) * split.num_entities + source
        order = np.argsort(key, kind="stable")
        in_order = key[order]
        new = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1])) if len(order) else np.empty(0, np.int64)
        size = int(np.clip(BATCH_ROWS // max(split.num_entities, 1), 1, LARGEST_BATCH))
        return cls(triple, source, relation, answer, is_head, order, np.append(new, len(order)), size)

    def __len__(self) -> int:
        return len(self.triple)

    @property
    def num_distinct(self) -> int:
        return len(self._starts) - 1

    @property
    def num_batches(self) -> int:
        return -(-self.num_distinct // self._batch_size)

    def batch(self, index: int) -> QueryBatch:
        """Batch `index` of `num_batches`."""
        first, last = index * self._batch_size, min((index + 1) * self._batch_size, self.num_distinct)
        starts = self._starts[first : last + 1]
        position = self._order[starts[0] : starts[-1]]
        asked = self._order[starts[:-1]]
        row = np.repeat(np.arange(last - first), np.diff(starts))
        return QueryBatch(self.source[asked], self.relation[asked], row, self.answer[position], position)

    def batches(self) -> Iterator[QueryBatch]:
        return (self.batch(index) for index in range(self.num_batches))
