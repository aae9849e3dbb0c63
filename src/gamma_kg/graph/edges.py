"""Typed edges in the one order that propagation wants: sorted by (node, type, neighbour).

An edge (u, r, v) means: what is computed from the state of v with type r is added at u (docs/model.md §3). All edges
with the same (u, r) form a group, so a node owns a run of groups and a group a run of neighbours:

    node u  →  groups   node_ptr[u] .. node_ptr[u+1]
    group g →  type     group_type[g]
            →  edges    group_ptr[g] .. group_ptr[g+1]  →  neighbour[...]

With every edge (u, r, v) the edge (v, inverse[r], u) is present too, so the same arrays serve the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.inverse import both_ways, inverse_types
from gamma_kg.graph.ordering import sorted_pairs, starts_of_runs

IntArray = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class EdgeGroups:
    """Edges of a graph with `num_nodes` nodes and `num_types` edge types, grouped by (node, type): what is computed on.

    The groups of a node, and the edges of a group, are in no promised order; `Edges` promises one.
    """

    num_nodes: int
    num_types: int
    node_ptr: Tensor  # int64 [num_nodes + 1]
    group_type: Tensor  # int32 [G]
    group_ptr: Tensor  # int64 [G + 1]
    neighbour: Tensor  # int32 [E]
    inverse: Tensor  # int32 [num_types]: the type that the same edge has when read from its other end

    @property
    def num_edges(self) -> int:
        return self.neighbour.numel()

    @property
    def num_groups(self) -> int:
        return self.group_type.numel()

    @property
    def device(self) -> torch.device:
        return self.neighbour.device

    @cached_property
    def group_node(self) -> Tensor:
        """The node that owns each group, int64 [G]."""
        nodes = torch.arange(self.num_nodes, device=self.device)
        return torch.repeat_interleave(nodes, self.node_ptr.diff(), output_size=self.num_groups)

    def slice(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
        """(node, type, neighbour), each int64, of the edges start .. stop in the order they are kept."""
        position = torch.arange(start, stop, device=self.device)
        group = torch.searchsorted(self.group_ptr, position, right=True) - 1
        node = torch.searchsorted(self.node_ptr, group, right=True) - 1
        return node, self.group_type[group].long(), self.neighbour[start:stop].long()

    def to(self, device: torch.device | str) -> Self:
        """These edges on another device; itself when they are there already."""
        if torch.device(device) == self.device:
            return self
        names = ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    def __repr__(self) -> str:
        sizes = f"{self.num_nodes} nodes, {self.num_edges} edges of {self.num_types} types, {self.num_groups} groups"
        return f"{type(self).__name__}({sizes})"


@dataclass(frozen=True, eq=False, repr=False)
class Edges(EdgeGroups):
    """Edges sorted by (node, type, neighbour), so that any of them can be found by bisection."""

    @classmethod
    def build(cls, node: IntArray, type_: IntArray, neighbour: IntArray, num_nodes: int, inverse: IntArray) -> Edges:
        """Sort edges (node, type, neighbour), which must hold the inverse of each edge; repeated edges stay."""
        num_types = len(inverse)
        group_key = node.astype(np.int64) * num_types + type_
        group_key, neighbour = sorted_pairs(group_key, neighbour, num_nodes * num_types, num_nodes)
        group_start = starts_of_runs(group_key)
        group_key = group_key[group_start]
        group_node, group_type = group_key // max(num_types, 1), group_key % max(num_types, 1)
        return cls(
            num_nodes=num_nodes,
            num_types=num_types,
            node_ptr=torch.from_numpy(np.searchsorted(group_node, np.arange(num_nodes + 1)).astype(np.int64)),
            group_type=torch.from_numpy(group_type.astype(np.int32)),
            group_ptr=torch.from_numpy(np.append(group_start, len(neighbour)).astype(np.int64)),
            neighbour=torch.from_numpy(neighbour.astype(np.int32)),
            inverse=torch.from_numpy(np.asarray(inverse, dtype=np.int32)),
        )

    @classmethod
    def of_triples(cls, triples: IntArray, num_entities: int, num_relations: int) -> Edges:
        """Every triple (h, r, t) as the edges (h, r, t) and (t, inverse of r, h)."""
        return cls.build(*both_ways(triples, num_relations), num_entities, inverse_types(num_relations))

    def degrees(self, node: Tensor) -> Tensor:
        """How many edges each of the nodes has."""
        try:
            return self.group_ptr[self.node_ptr[node + 1]] - self.group_ptr[self.node_ptr[node]]
        except IndexError:
            raise DataError(
                f"{self!r} is damaged: groups of a node are out of range; make it again from its facts"
            ) from None

    def find(self, node: Tensor, type_: Tensor, neighbour: Tensor) -> Tensor:
        """Positions of the given edges in sorted order, every copy of each; what is not there is passed over."""
        low, high = self._runs(node, type_, neighbour)
        is_there = high > low
        # Copies of an edge lie together, so its first position tells it from all others, and so does its last.
        low, high = torch.unique(low[is_there]), torch.unique(high[is_there])
        count = high - low
        first = torch.repeat_interleave(low - (count.cumsum(0) - count), count)
        return first + torch.arange(len(first), device=self.device)

    def has(self, node: Tensor, type_: Tensor, neighbour: Tensor) -> Tensor:
        """Which of the given edges are there, bool."""
        low, high = self._runs(node, type_, neighbour)
        return high > low

    def without(self, positions: Tensor) -> Edges:
        """The same graph less the edges at `positions`: one linear pass, nothing is sorted again."""
        keep = torch.ones(self.num_edges, dtype=torch.bool, device=self.device)
        keep[positions] = False
        removed_before = torch.searchsorted(positions.unique(), self.group_ptr)
        return replace(self, group_ptr=self.group_ptr - removed_before, neighbour=self.neighbour[keep])

    def copies_without(self, count: int, copy: Tensor, node: Tensor, type_: Tensor, neighbour: Tensor) -> EdgeGroups:
        """The graph so many times side by side, its nodes numbered on, each copy less the edges given for it."""
        low, high = self._runs(node, type_, neighbour)
        times = high - low
        first = torch.repeat_interleave(low - (times.cumsum(0) - times), times)
        keep_CE = torch.ones(count, self.num_edges, dtype=torch.bool, device=self.device)
        keep_CE[copy.repeat_interleave(times), first + torch.arange(len(first), device=self.device)] = False
        kept_CE1 = torch.nn.functional.pad(keep_CE.cumsum(1), (1, 0))
        before_C1 = torch.nn.functional.pad(kept_CE1[:, -1].cumsum(0), (1, 0))
        group_ptr_CG = kept_CE1[:, self.group_ptr[:-1]] + before_C1[:-1, None]
        number_C1 = torch.arange(count, device=self.device)[:, None]
        node_ptr_CN = self.node_ptr[:-1] + number_C1 * self.num_groups
        numbered_CE = self.neighbour + (number_C1 * self.num_nodes).to(self.neighbour.dtype)
        return EdgeGroups(
            num_nodes=count * self.num_nodes,
            num_types=self.num_types,
            node_ptr=torch.cat((node_ptr_CN.reshape(-1), self.node_ptr[-1:] * count)),
            group_type=self.group_type.repeat(count),
            group_ptr=torch.cat((group_ptr_CG.reshape(-1), before_C1[-1:])),
            neighbour=numbered_CE[keep_CE],
            inverse=self.inverse,
        )

    def _runs(self, node: Tensor, type_: Tensor, neighbour: Tensor) -> tuple[Tensor, Tensor]:
        """First position, and one past the last, of each edge's copies; the two are equal where it is not there.

        Two bisections, inside the node and inside the group: no key per edge is needed, whatever the graph's size.
        """
        if self.num_edges == 0:
            return torch.zeros_like(node), torch.zeros_like(node)
        group = bisect(self.group_type, self.node_ptr[node], self.node_ptr[node + 1], type_)
        is_there = group < self.node_ptr[node + 1]
        group = group.clamp(max=self.num_groups - 1)
        is_there &= self.group_type[group] == type_
        start = self.group_ptr[group]
        stop = torch.where(is_there, self.group_ptr[group + 1], start)
        return bisect(self.neighbour, start, stop, neighbour), bisect(self.neighbour, start, stop, neighbour + 1)


def bisect(values: Tensor, low: Tensor, high: Tensor, wanted: Tensor) -> Tensor:
    """For each row the first position from `low` on whose value is not below `wanted`, or `high`; ascending there."""
    widest = int((high - low).max()) if len(low) else 0
    for _ in range(widest.bit_length()):
        is_open = low < high
        middle = torch.where(is_open, (low + high) // 2, 0)
        is_below = values[middle] < wanted
        low = torch.where(is_open & is_below, middle + 1, low)
        high = torch.where(is_open & ~is_below, middle, high)
    return low
