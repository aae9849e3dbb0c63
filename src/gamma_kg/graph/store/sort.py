"""Sorting more edges than fit into memory: into parts by node, and each part by itself.

A node's edges all go to one part, parts follow each other, so the sorted parts one after the other are the whole in
order. A repeated edge lands beside its copy and is dropped there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.graph.inverse import both_ways, is_inverse, num_types
from gamma_kg.graph.ordering import sorted_pairs, starts_of_runs
from gamma_kg.graph.store.layout import ArrayFolder
from gamma_kg.graph.store.spool import disk_errors, int32_bytes

# The nodes are counted in so many ranges at most, whatever their number.
MOST_RANGES = 1 << 18
# Bytes at work per edge of a part while it is sorted.
BYTES_PER_EDGE = 80
LEAST_EDGES = 1 << 20

IntArray = NDArray[np.integer]


@dataclass(frozen=True)
class NodeRanges:
    """Which nodes each part holds: where they begin, [P + 1]."""

    first: NDArray[np.int64]

    @classmethod
    def plan(cls, histogram: NDArray[np.int64], width: int, num_nodes: int, edges_per_part: int) -> NodeRanges:
        """Parts of about so many edges each, from how many edges each range of `width` nodes has."""
        total = np.cumsum(histogram)
        part = (total - histogram) // max(edges_per_part, 1)
        first = starts_of_runs(part) * width
        return cls(np.append(first if len(first) else 0, num_nodes).astype(np.int64))

    @property
    def count(self) -> int:
        return len(self.first) - 1


class EdgeSorter:
    """Takes triples by id in any order, and writes them and their inverses as sorted edges."""

    def __init__(self, work: Path, num_nodes: int, num_relations: int, memory: int) -> None:
        self._work, self._num_nodes, self._num_relations = work, num_nodes, num_relations
        self._width = max(1, -(-num_nodes // MOST_RANGES))
        self._edges_per_part = max(memory // BYTES_PER_EDGE, LEAST_EDGES)
        self._histogram = np.zeros(-(-num_nodes // self._width), dtype=np.int64)

    def count(self, triples: IntArray) -> None:
        """First pass: how many edges there will be where."""
        for ends in (triples[:, 0], triples[:, 2]):
            self._histogram += np.bincount(ends // self._width, minlength=len(self._histogram))

    def split(self, blocks: Iterable[IntArray]) -> NodeRanges:
        """Second pass: every edge into the file of its part."""
        parts = NodeRanges.plan(self._histogram, self._width, self._num_nodes, self._edges_per_part)
        for number in range(parts.count):
            self._path(number).unlink(missing_ok=True)
        for triples in blocks:
            edge = np.stack(both_ways(triples, self._num_relations), axis=1).astype("<i4")
            part = np.searchsorted(parts.first, edge[:, 0], side="right") - 1
            order = np.argsort(part.astype(np.uint16 if parts.count < 1 << 16 else np.int64), kind="stable")
            cut = np.searchsorted(part[order], np.arange(parts.count + 1))
            for number in np.unique(part).tolist():
                path = self._path(number)
                # Opened anew each time: there may be more parts than files can be open at once.
                with disk_errors(path), path.open("ab") as file:
                    file.write(int32_bytes(edge[order[cut[number] : cut[number + 1]]]))
        return parts

    def write(self, parts: NodeRanges, folder: ArrayFolder) -> int:
        """Third pass: each part sorted and appended. Returns the number of distinct triples."""
        types = num_types(self._num_relations)
        num_triples = num_groups = 0
        with (
            folder.writer("edges.node_ptr", np.int64) as node_ptr,
            folder.writer("edges.group_type", np.int32) as group_type,
            folder.writer("edges.group_ptr", np.int64) as group_ptr,
            folder.writer("edges.neighbour", np.int32) as neighbour,
        ):
            node_ptr.append(np.zeros(1))
            for number in range(parts.count):
                first, last = int(parts.first[number]), int(parts.first[number + 1])
                path = self._path(number)
                rows = np.fromfile(path, dtype="<i4") if path.exists() else np.empty(0, dtype=np.int32)
                node, type_, other = rows.reshape(-1, 3).T
                group = (node.astype(np.int64) - first) * types + type_
                group, other = sorted_pairs(group, other, (last - first) * types, self._num_nodes)
                once = starts_of_runs(group, other)
                group, other = group[once], other[once]
                num_triples += len(group) - int(is_inverse(group % types, self._num_relations).sum())
                start = starts_of_runs(group)
                group_ptr.append(neighbour.count + start)
                neighbour.append(other)
                group = group[start]
                group_type.append(group % types)
                per_node = np.bincount(group // types, minlength=last - first)
                node_ptr.append(num_groups + np.cumsum(per_node))
                num_groups += len(group)
                path.unlink(missing_ok=True)
            group_ptr.append(np.array([neighbour.count]))
            if neighbour.count != 2 * num_triples:
                raise DataError("an edge lost its inverse while sorting; this is a fault of the program")
            for array in (node_ptr, group_type, group_ptr, neighbour):
                folder.add(array)
        return num_triples

    def _path(self, part: int) -> Path:
        return self._work / f"part-{part}.edges.bin"
