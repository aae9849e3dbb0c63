"""Which queries are worth asking, and which answers fit: from the roles that entities play in the graph.

A slot is one end of a relation: slot r is "head of r", the inverse of r is "tail of r", and asking (e, slot) is asking
the query (source e, relation id slot). A slot fits an entity if, for each other slot that the entity fills, entities
with that slot commonly fill this one too: one role that rules it out is enough (cities are located in countries as
countries are in continents, but what is a capital borders nothing). A query is worth asking where an answer is
likely to be missing: the slot fits and is empty, or is filled and commonly has several answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

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
MOST_QUERIES = 1 << 22  # that are chosen, all slots together
CACHED_BYTES = 1 << 28
SLOTS_PER_TICK = 32

FloatArray = NDArray[np.float64]


class Slots:
    """How often every entity fills every slot, and how often the filler of one slot fills another.

    Nothing here looks at all entities for one slot but what says so: a graph may have tens of thousands of slots.
    """

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.num_entities, self.num_slots = kg.num_entities, kg.num_types
        rows, columns, _ = both_ways(kg.triples.numpy(), kg.num_relations)
        shape = (self.num_entities, self.num_slots)
        by_entity = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        by_entity.sum_duplicates()
        self._by_entity, self._by_slot = by_entity, by_entity.tocsc()
        self._fillers: FloatArray = np.diff(self._by_slot.indptr).astype(np.float64)
        self._exclusions = Exclusions(self._fillers, self.num_entities)
        # A slot with so few fillers never rules out that another one is worth asking for.
        self._is_common = DOUBT * GUESS / (self._fillers + DOUBT) < MIN_WORTH
        owner = np.repeat(np.arange(self.num_entities), np.diff(by_entity.indptr))
        self._common_roles = np.bincount(owner[self._is_common[by_entity.indices]], minlength=self.num_entities)
        kept = max(4, CACHED_BYTES // (8 * max(self.num_entities, self.num_slots)))
        self.both = lru_cache(maxsize=kept)(self._both)
        self.count = lru_cache(maxsize=kept)(self._count)
        self.excluded = lru_cache(maxsize=kept)(self._excluded)

    def _count(self, slot: int) -> FloatArray:
        """How often every entity fills the slot, (N,)."""
        column = self._by_slot[:, [slot]]
        count = np.zeros(self.num_entities)
        count[column.indices] = column.data
        return count

    def _both(self, slot: int) -> FloatArray:
        """How many fillers of every slot fill this one too, (S,)."""
        role, _ = _entries(self._by_entity, _entries(self._by_slot, np.array([slot]))[0])
        return np.bincount(role, minlength=self.num_slots).astype(np.float64)

    def excluding_roles(self, slot: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """How many fillers of every slot fill this one too, and which slots rule it out, (S,)."""
        both = self.both(slot)
        return both, self._exclusions.of(slot, both)

    def roles(self, entity: int) -> NDArray[np.int64]:
        """The slots that an entity fills."""
        return _entries(self._by_entity, np.array([entity]))[0]

    def num_fillers(self, slot: int) -> int:
        return int(self._fillers[slot])

    def _excluded(self, slot: int) -> NDArray[np.bool_]:
        """Entities with a role whose many players never fill the slot, (N,)."""
        return self.are_excluded(slot, np.arange(self.num_entities))

    def are_excluded(self, slot: int, entity: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which entities have a role whose many players never fill the slot."""
        role, count = _entries(self._by_entity, entity)
        is_out = _of_each(np.logical_or, self.excluding_roles(slot)[1][role], count, False)
        return np.asarray(is_out & (self.counts(slot, entity) == 0))

    def promising(self, slot: int, among: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], FloatArray]:
        """Entities worth asking for the slot, and how much; of all, unless some are given."""
        sources = self._possible(slot) if among is None else among
        worth = self.worth_of(slot, sources)
        is_worth = worth >= MIN_WORTH
        return sources[is_worth], worth[is_worth]

    def _possible(self, slot: int) -> NDArray[np.int64]:
        """All entities that may be worth asking for the slot: those in it, and those of whose roles none that is common
        speaks too much against it. Found from the roles that do not, since these are few."""
        fit = np.flatnonzero((self._given(slot) >= MIN_WORTH) & self._is_common)
        agreeing = np.bincount(_entries(self._by_slot, fit)[0], minlength=self.num_entities)
        return np.flatnonzero((agreeing == self._common_roles) | (self.count(slot) > 0))

    def counts(self, slot: int, entity: NDArray[np.int64]) -> FloatArray:
        """How often each entity fills the slot."""
        return self.count(slot)[entity]

    def fits_of(self, slot: int, entity: NDArray[np.int64]) -> FloatArray:
        """How well each entity fits a slot, judged by the other slot that speaks most against it; 0..1."""
        role, count = _entries(self._by_entity, entity)
        return _of_each(np.minimum, self._given(slot)[role], count, 0.0)

    def worth_of(self, slot: int, entity: NDArray[np.int64]) -> FloatArray:
        """Chance that an answer is missing when each entity is asked for this slot."""
        count = self.count(slot)
        fillers = int(self._fillers[slot])
        if not fillers:
            return np.zeros(len(entity))
        # Nil for a capital, high for a neighbour.
        has_more = float((count > 1).sum() / (fillers + DOUBT))
        return np.where(count[entity] > 0, has_more, self.fits_of(slot, entity))

    def are_fit(self, slot: int, entity: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which entities fill the slot, or are of the type of its fillers."""
        return np.asarray((self.counts(slot, entity) > 0) | (self.fits_of(slot, entity) >= MIN_FIT))

    def _given(self, slot: int) -> FloatArray:
        """How commonly the fillers of every slot fill this one, (S,)."""
        given = (self.both(slot) + DOUBT * GUESS) / (self._fillers + DOUBT)
        given[slot] = 1.0
        return given


def _entries(matrix: Any, rows: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of what stands in some rows (of a matrix by columns: columns), one after the other, and how many
    there are in each."""
    first = matrix.indptr[rows].astype(np.int64)
    count = matrix.indptr[rows + 1] - first
    at = np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
    return matrix.indices[at].astype(np.int64), count


def _of_each(join: np.ufunc, value: NDArray[Any], count: NDArray[np.int64], of_none: Any) -> NDArray[Any]:
    """What `join` makes of the first count[0] values, of the next count[1], and so on."""
    found = np.full(len(count), of_none)
    is_any = count > 0
    if is_any.any():
        found[is_any] = join.reduceat(value, (np.cumsum(count) - count)[is_any])
    return found


class Exclusions:
    """Which slots rule out others, if so many entities fill each of them, (S,)."""

    def __init__(self, fillers: FloatArray, num_entities: int) -> None:
        self._fillers = fillers
        self._usual = fillers / max(num_entities, 1)
        self._if_none = at_most(np.zeros_like(fillers), fillers) <= MAX_SHARED_ROLE

    def of(self, slot: int, both: FloatArray) -> NDArray[np.bool_]:
        """The slots that rule this one out, (S,), if so many of their fillers fill `both`; few do with any."""
        found = self._if_none & (at_most(0, self._fillers[slot]) <= MAX_LIFT * self._usual)
        some = np.flatnonzero(both)
        seen, of = both[some], self._fillers[some]
        found[some] = (seen <= MAX_SLIPS * of) & (at_most(seen, of) <= MAX_SHARED_ROLE)
        found[some] &= at_most(seen, np.full_like(seen, self._fillers[slot])) <= MAX_LIFT * self._usual[some]
        found[slot] = False
        return found


class Promising(Protocol):
    """Slots that say of whom it is worth asking for them."""

    def promising(self, slot: int, among: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], FloatArray]:
        """Entities worth asking for the slot, and how much; of all that are known of, unless some are given."""


def choose_queries(
    kg: KnowledgeGraph,
    slots: Promising,
    relations: NDArray[np.int64],
    among: NDArray[np.int64] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> NDArray[np.int64]:
    """Queries (source, relation id) of the given relations in both directions, most promising first, [n, 2].

    A relation in which much seems to be missing does not use up the time of all others. Of very many queries those that
    promise most are kept. `tick` is called every now and then, and may raise what ends it.
    """
    asked: list[NDArray[np.int64]] = []
    promise: list[FloatArray] = []
    waiting = 0
    for number, slot in enumerate(np.concatenate([relations, inverse_of(relations, kg.num_relations)]).tolist(), 1):
        if number % SLOTS_PER_TICK == 0:
            tick()
        sources, worth = slots.promising(slot, among)
        asked.append(np.stack([sources, np.full(len(sources), slot)], axis=1))
        promise.append(worth)
        waiting += len(sources)
        if waiting > 2 * MOST_QUERIES:
            asked, promise = _most_promising(asked, promise)
            waiting = MOST_QUERIES
    (query,), (worth,) = _most_promising(asked, promise)
    order = np.argsort(-worth, kind="stable")
    return query[order[_in_turns(direct_of(query[order, 1], kg.num_relations), worth[order])]]


def _most_promising(
    asked: list[NDArray[np.int64]], promise: list[FloatArray]
) -> tuple[list[NDArray[np.int64]], list[FloatArray]]:
    """All as one, in the order they came in, or the best MOST_QUERIES of them."""
    query, worth = np.concatenate(asked), np.concatenate(promise)
    if len(worth) > MOST_QUERIES:
        kept = np.sort(np.argsort(-worth, kind="stable")[:MOST_QUERIES])
        query, worth = query[kept], worth[kept]
    return [query], [worth]


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
