"""Which queries are worth asking, and which answers fit: from the roles that entities play in the graph.

A slot is one end of a relation: slot r is "head of r", the inverse of r is "tail of r", and asking (e, slot) is asking
the query (source e, relation id slot). A slot fits an entity if, for each other slot that the entity fills, entities
with that slot commonly fill this one too: one role that rules it out is enough (cities are located in countries as
countries are in continents, but what is a capital borders nothing). A query is worth asking where an answer is
likely to be missing: the slot fits and is empty, or is filled and commonly has several answers.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import both_ways, direct_of, inverse_of
from gamma_kg.rules.bounds import MAX_SLIPS, at_most

# A candidate that has never been seen in a slot may fill it if the slot fits it at least this well.
MIN_FIT = 0.2
MIN_WORTH = 0.05
# Shares of few entities say little: they count as if DOUBT more had been seen, the part GUESS of them in the slot.
DOUBT = 2.0
GUESS = 0.2
# A role rules a slot out if next to none of those who play it fill the slot, and if it is far rarer among the
# slot's fillers than among all entities: that a rare slot is seldom filled says nothing.
MAX_SHARED_ROLE = 0.01
MAX_LIFT = 0.05
# So many queries of other relations, if there are any, come between two of the same.
REST = 2
CACHED_BYTES = 1 << 28

FloatArray = NDArray[np.float64]


class Slots:
    """How often every entity fills every slot, and how often the filler of one slot fills another."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.num_entities, self.num_slots = kg.num_entities, kg.num_types
        rows, columns, _ = both_ways(kg.triples.numpy(), kg.num_relations)
        shape = (self.num_entities, self.num_slots)
        by_entity = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        by_entity.sum_duplicates()
        self._by_entity, self._by_slot = by_entity, by_entity.tocsc()
        self._filled = (by_entity > 0).astype(np.float64)
        self._fillers: FloatArray = self._filled.sum(axis=0)
        kept = max(4, CACHED_BYTES // (8 * max(self.num_entities, 1)))
        self.worth = lru_cache(maxsize=kept)(self._worth)
        self.fits = lru_cache(maxsize=kept)(self._fits)
        self.fit_of = lru_cache(maxsize=kept)(self.fit)
        self.count = lru_cache(maxsize=kept)(self._count)
        self.excluded = lru_cache(maxsize=kept)(self._excluded)

    def _count(self, slot: int) -> FloatArray:
        """How often every entity fills the slot, (N,)."""
        column = self._by_slot[:, [slot]]
        count = np.zeros(self.num_entities)
        count[column.indices] = column.data
        return count

    def fit(self, slot: int) -> FloatArray:
        """How well every entity fits a slot, judged by the other slot that speaks most against it; 0..1, (N,)."""
        both = self._filled.T @ (self.count(slot) > 0).astype(np.float64)
        given = (both + DOUBT * GUESS) / (self._fillers + DOUBT)
        given[slot] = 1.0
        fit = np.zeros(self.num_entities)
        is_used = np.diff(self._by_entity.indptr) > 0
        if is_used.any():
            fit[is_used] = np.minimum.reduceat(given[self._by_entity.indices], self._by_entity.indptr[:-1][is_used])
        return fit

    def excluding_roles(self, slot: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """How many fillers of every slot fill this one too, and which slots rule it out, (S,)."""
        both = self._filled.T @ (self.count(slot) > 0).astype(np.float64)
        return both, excludes(slot, both, self._fillers, self.num_entities)

    def roles(self, entity: int) -> NDArray[np.int64]:
        """The slots that an entity fills."""
        by_entity = self._by_entity
        return np.asarray(by_entity.indices[by_entity.indptr[entity] : by_entity.indptr[entity + 1]], dtype=np.int64)

    def num_fillers(self, slot: int) -> int:
        return int(self._fillers[slot])

    def _excluded(self, slot: int) -> NDArray[np.bool_]:
        """Entities with a role whose many players never fill the slot, (N,)."""
        _, is_excluding = self.excluding_roles(slot)
        return np.asarray((self._filled @ is_excluding.astype(np.float64) > 0) & (self.count(slot) == 0))

    def _fits(self, slot: int) -> NDArray[np.bool_]:
        """Entities seen in the slot, and those of the type of its fillers, (N,)."""
        return np.asarray((self.count(slot) > 0) | (self.fit(slot) >= MIN_FIT))

    def _worth(self, slot: int) -> FloatArray:
        """Chance that an answer is missing when every entity is asked for this slot, (N,)."""
        count = self.count(slot)
        fillers = count[count > 0]
        if not len(fillers):
            return np.zeros(self.num_entities)
        # Nil for a capital, high for a neighbour.
        has_more = float((fillers > 1).sum() / (len(fillers) + DOUBT))
        return np.where(count > 0, has_more, self.fit(slot))

    def promising(self, slot: int, among: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], FloatArray]:
        """Entities worth asking for the slot, and how much; of all, unless some are given."""
        worth = self.worth(slot)
        sources = np.flatnonzero(worth >= MIN_WORTH)
        if among is not None:
            sources = sources[np.isin(sources, among)]
        return sources, worth[sources]

    def counts(self, slot: int, entity: NDArray[np.int64]) -> FloatArray:
        """How often each entity fills the slot."""
        return self.count(slot)[entity]

    def fits_of(self, slot: int, entity: NDArray[np.int64]) -> FloatArray:
        return self.fit_of(slot)[entity]

    def worth_of(self, slot: int, entity: NDArray[np.int64]) -> FloatArray:
        return self.worth(slot)[entity]

    def are_fit(self, slot: int, entity: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self.fits(slot)[entity]


def excludes(slot: int, both: FloatArray, fillers: FloatArray, num_entities: int) -> NDArray[np.bool_]:
    """Which slots rule this one out, (S,), if so many of their fillers fill `both`."""
    usual = fillers / max(num_entities, 1)
    found = (both <= MAX_SLIPS * fillers) & (at_most(both, fillers) <= MAX_SHARED_ROLE)
    found &= at_most(both, np.full_like(both, fillers[slot])) <= MAX_LIFT * usual
    found[slot] = False
    return found


class Promising(Protocol):
    """Slots that say of whom it is worth asking for them."""

    def promising(self, slot: int, among: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], FloatArray]:
        """Entities worth asking for the slot, and how much; of all that are known of, unless some are given."""


def choose_queries(
    kg: KnowledgeGraph, slots: Promising, relations: NDArray[np.int64], among: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Queries (source, relation id) of the given relations in both directions, most promising first, [n, 2].

    A relation in which much seems to be missing does not use up the time of all others.
    """
    asked: list[NDArray[np.int64]] = []
    promise: list[NDArray[np.float64]] = []
    for slot in np.concatenate([relations, inverse_of(relations, kg.num_relations)]).tolist():
        sources, worth = slots.promising(slot, among)
        asked.append(np.stack([sources, np.full(len(sources), slot)], axis=1))
        promise.append(worth)
    query, worth = np.concatenate(asked), np.concatenate(promise)
    order = np.argsort(-worth, kind="stable")
    return query[order[_in_turns(direct_of(query[order, 1], kg.num_relations), worth[order])]]


def _in_turns(relation: NDArray[np.int64], worth: FloatArray) -> NDArray[np.int64]:
    """Places of queries, best first as they are given, so that others come between two of the same relation."""
    by_relation = np.argsort(relation, kind="stable")
    starts = np.flatnonzero(np.diff(relation[by_relation], prepend=-1))
    left = [part.tolist()[::-1] for part in np.split(by_relation, starts[1:])] if len(relation) else []
    ready = [(-worth[part[-1]], at) for at, part in enumerate(left)]
    heapify(ready)
    resting: deque[tuple[int, int]] = deque()  # when a relation's turn may come again
    found: list[int] = []
    while ready or resting:
        while resting and (not ready or resting[0][0] <= len(found)):
            at = resting.popleft()[1]
            heappush(ready, (-worth[left[at][-1]], at))
        at = heappop(ready)[1]
        found.append(left[at].pop())
        if left[at]:
            resting.append((len(found) + REST, at))
    return np.array(found, dtype=np.int64)
