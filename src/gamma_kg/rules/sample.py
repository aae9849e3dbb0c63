"""Some entities of a large graph with all of their facts: what rules are drawn from where nobody waits for all facts.

Entities lie in blocks at even distances in the order of their ids, so few pages of a store are read. What is counted of
them (how many answers a slot has, which slots go together) is true of them; facts are looked up in the whole graph.

n entities of the sample, G of their groups (entity, slot), S slots.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.inverse import direct_of, is_inverse

IntArray = NDArray[np.int64]
BLOCKS, BLOCK_ENTITIES = 256, 256


class EntitySample:
    """The entities `entity_n`, ascending, and their groups in the order of the edges."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        size = min(BLOCK_ENTITIES, edges.num_nodes)
        first = np.unique(np.linspace(0, edges.num_nodes - size, BLOCKS).astype(np.int64))
        self.entity_n: IntArray = np.unique((first[:, None] + np.arange(size)).reshape(-1))
        self.group_G, self.row_G = groups_of(edges, self.entity_n)
        self.slot_G: IntArray = edges.group_type[torch.from_numpy(self.group_G)].numpy().astype(np.int64)
        group = torch.from_numpy(self.group_G)
        start, stop = edges.group_ptr[group], edges.group_ptr[group + 1]
        self.size_G: IntArray = (stop - start).numpy()
        _require(edges, bool(((start >= 0) & (start <= stop) & (stop <= edges.num_edges)).all()), "groups of edges")
        _require(edges, bool(((self.slot_G >= 0) & (self.slot_G < edges.num_types)).all()), "types of edges")

    def __len__(self) -> int:
        return len(self.entity_n)

    @cached_property
    def filled_nS(self) -> sparse.csr_array:
        """1 where an entity fills a slot."""
        shape = (len(self), self._edges.num_types)
        return sparse.csr_array((np.ones(len(self.row_G)), (self.row_G, self.slot_G)), shape=shape)

    @cached_property
    def fillers_S(self) -> IntArray:
        """How many entities fill each slot."""
        return np.bincount(self.slot_G, minlength=self._edges.num_types).astype(np.int64)

    @cached_property
    def several_S(self) -> IntArray:
        """How many entities fill each slot more than once."""
        return np.bincount(self.slot_G[self.size_G > 1], minlength=self._edges.num_types).astype(np.int64)

    def pairs(self, slot: int, most: int, of_each: int) -> IntArray:
        """(entity, other end) of facts that fill the slot: at most so many, and at most `of_each` of an entity."""
        at = np.flatnonzero(self.slot_G == slot)
        if len(at) > most:
            at = at[np.linspace(0, len(at) - 1, most).astype(np.int64)]
        which, other = self._ends(at, of_each)
        return np.stack([self.entity_n[self.row_G[which]], other], axis=1)[:most]

    def facts(self, of_each: int) -> IntArray:
        """All facts of the entities, at most `of_each` of an entity and slot, as triples [n, 3]."""
        which, other = self._ends(np.arange(len(self.group_G)), of_each)
        num = self._edges.num_types // 2
        head, relation, tail = self.entity_n[self.row_G[which]], self.slot_G[which], other
        is_back = is_inverse(relation, num)
        ends = np.where(is_back, tail, head), direct_of(relation, num), np.where(is_back, head, tail)
        return np.unique(np.stack(ends, axis=1), axis=0)

    def _ends(self, at: IntArray, of_each: int) -> tuple[IntArray, IntArray]:
        """For some groups of the sample: which group, and the neighbour, of at most `of_each` edges of each."""
        count = np.minimum(self.size_G[at], of_each)
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        start = self._edges.group_ptr[torch.from_numpy(self.group_G[at])].numpy()
        other = self._edges.neighbour[torch.from_numpy(np.repeat(start, count) + within)].numpy()
        _require(self._edges, bool(((other >= 0) & (other < self._edges.num_nodes)).all()), "ends of edges")
        return np.repeat(at, count), other.astype(np.int64)


def _require(edges: Edges, is_sound: bool, what: str) -> None:
    """The edges may come from files that nobody has read whole."""
    if not is_sound:
        raise DataError(f"{edges!r} is damaged: {what} are out of range; make it again from its facts")


def groups_of(edges: Edges, entity: IntArray) -> tuple[IntArray, IntArray]:
    """The groups of the given entities, and for each the place of its entity among them."""
    ids = torch.from_numpy(np.ascontiguousarray(entity, dtype=np.int64))
    first, last = edges.node_ptr[ids].numpy(), edges.node_ptr[ids + 1].numpy()
    count = last - first
    _require(edges, bool(((first >= 0) & (count >= 0) & (last <= edges.num_groups)).all()), "groups of nodes")
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(first, count) + within, np.repeat(np.arange(len(entity)), count)
