"""Known true answers per query: what filtered ranking leaves out, what wrong answers for training must avoid.

A query is (source, relation id), an inverse id asks for heads (`graph/inverse.py`). B queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.inverse import both_ways, num_types
from gamma_kg.graph.ordering import sorted_pairs, starts_of_runs

IntArray = NDArray[np.int64]
AnyIntArray = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """The answers of every query that has some, each once: those of query q are answer[ptr[q] : ptr[q + 1]]."""

    num_relations: int
    query: IntArray  # one integer per query, ascending
    ptr: IntArray
    answer: IntArray  # ascending for each query

    @classmethod
    def build(cls, triples: IntArray, num_entities: int, num_relations: int) -> KnownAnswers:
        """From triples (head, relation, tail), read in both directions; repeated triples count once."""
        source, relation, answer = both_ways(np.asarray(triples, dtype=np.int64), num_relations)
        return cls.of_queries(source, relation, answer, num_entities, num_entities, num_relations)

    @classmethod
    def of_queries(
        cls,
        source: AnyIntArray,
        relation: AnyIntArray,
        answer: AnyIntArray,
        num_sources: int,
        num_answers: int,
        num_relations: int,
    ) -> KnownAnswers:
        """From queries and their answers as they are."""
        query = _query(source, relation, num_relations)
        query, answer = sorted_pairs(query, answer, num_types(num_relations) * num_sources, num_answers)
        once = starts_of_runs(query, answer)
        query, answer = query[once], answer[once]
        start = starts_of_runs(query)
        return cls(num_relations, query[start], np.append(start, len(query)), answer)

    def of(self, source_B: IntArray, relation_B: IntArray) -> tuple[IntArray, IntArray]:
        """All known answers of the queries, flat: (which query, answer), in order of query, then of answer."""
        wanted_B = _query(source_B, relation_B, self.num_relations)
        if not len(self.query):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        at_B = np.minimum(np.searchsorted(self.query, wanted_B), len(self.query) - 1)
        count_B = np.where(self.query[at_B] == wanted_B, np.diff(self.ptr)[at_B], 0)
        owner = np.repeat(np.arange(len(wanted_B)), count_B)
        position = np.arange(len(owner)) - np.repeat(np.cumsum(count_B) - count_B, count_B)
        return owner, self.answer[self.ptr[at_B[owner]] + position]


def _query(source: AnyIntArray, relation: AnyIntArray, num_relations: int) -> IntArray:
    """The integer that stands for a query; source and relation are below 2^31, so it always fits."""
    return source.astype(np.int64) * num_types(num_relations) + relation
