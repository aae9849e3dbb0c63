"""What can be reached over the facts of one relation: all that is below a class, all that is above it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.inverse import direct_of, is_inverse

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
# The lists of all relations take about 40 bytes a fact: beyond so many facts those of some relations are kept.
KEPT_FACTS, KEPT_RELATIONS = 1 << 21, 64


class Closures:
    """Walks along a relation id (inverses count on from `num_relations`); its lists are made when first asked for."""

    def __init__(self, triples: IntArray, num_entities: int, num_relations: int) -> None:
        self.num_entities, self.num_relations = num_entities, num_relations
        order = np.argsort(triples[:, 1], kind="stable")
        self._head, self._tail = triples[order, 0], triples[order, 2]
        self._start = np.searchsorted(triples[order, 1], np.arange(num_relations + 1))
        self._lists = lru_cache(maxsize=None if len(triples) <= KEPT_FACTS else KEPT_RELATIONS)(self._build)

    def pairs(self, relation: int) -> tuple[IntArray, IntArray]:
        """(from, to) of every fact of a relation id."""
        direct = direct_of(relation, self.num_relations)
        rows = slice(int(self._start[direct]), int(self._start[direct + 1]))
        ends = (self._head[rows], self._tail[rows])
        return (ends[1], ends[0]) if is_inverse(relation, self.num_relations) else ends

    def step(self, nodes: IntArray, relation: int) -> IntArray:
        """All ends of facts that start at one of the nodes, with repetitions."""
        return self._steps(nodes, relation)[1]

    def _steps(self, nodes: IntArray, relation: int) -> tuple[IntArray, IntArray]:
        """The same with the place of the node that each starts at."""
        starts, pointer, ends = self._lists(relation)
        if not len(starts):
            return nodes[:0], nodes[:0]
        at = np.minimum(np.searchsorted(starts, nodes), len(starts) - 1)
        place = np.flatnonzero(starts[at] == nodes)
        at = at[place]
        count = pointer[at + 1] - pointer[at]
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(place, count), np.asarray(ends[np.repeat(pointer[at], count) + within])

    def ends(self, node: int, relation: int) -> IntArray:
        """The ends of the facts that start at one node."""
        starts, pointer, ends = self._lists(relation)
        at = int(starts.searchsorted(node))
        if at == len(starts) or starts[at] != node:
            return ends[:0]
        return ends[pointer[at] : pointer[at + 1]]

    def reach(self, source: int, *relations: int) -> BoolArray:
        """Everything that can be reached from the source over any of the relations, itself included; (N,)."""
        return self.reach_from(np.array([source], dtype=np.int64), *relations)

    def reach_from(self, nodes: IntArray, *relations: int) -> BoolArray:
        """The same from several nodes."""
        reached = np.zeros(self.num_entities, dtype=bool)
        reached[nodes] = True
        frontier = np.unique(nodes)
        while relations and len(frontier):
            found = np.concatenate([self.step(frontier, relation) for relation in relations])
            frontier = np.unique(found[~reached[found]])
            reached[frontier] = True
        return reached

    def reach_of_each(self, nodes: IntArray, *relations: int) -> tuple[IntArray, IntArray]:
        """What `reach` finds from each of several nodes, as pairs: the place of a node, and what it reaches. For walks
        that end soon, up from a class; all of them at once, since each step takes longer to call than to do."""
        reached = frontier = np.arange(len(nodes)) * self.num_entities + nodes
        while relations and len(frontier):
            place, node = np.divmod(frontier, self.num_entities)
            steps = [self._steps(node, relation) for relation in relations]
            found = [place[at] * self.num_entities + end for at, end in steps]
            frontier = np.setdiff1d(np.concatenate(found), reached)
            reached = np.union1d(reached, frontier)
        place, node = np.divmod(reached, max(self.num_entities, 1))
        return place, node

    def _build(self, relation: int) -> tuple[IntArray, IntArray, IntArray]:
        start, end = self.pairs(relation)
        order = np.argsort(start, kind="stable")
        starts, first = np.unique(start[order], return_index=True)
        return starts, np.append(first, len(start)), end[order]
