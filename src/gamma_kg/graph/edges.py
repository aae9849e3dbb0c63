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

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import DataError

IntArray = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of a graph with `num_nodes` nodes and `num_types` edge types, grouped by (node, type)."""

    num_nodes: int
    num_types: int
    node_ptr: Tensor  # int64 [num_nodes + 1]
    group_type: Tensor  # int32 [G]
    group_ptr: Tensor  # int64 [G + 1]
    neighbour: Tensor  # int32 [E]
    inverse: Tensor  # int32 [num_types]: the type that the same edge has when read from its other end

    @classmethod
    def build(cls, node: IntArray, type_: IntArray, neighbour: IntArray, num_nodes: int, inverse: IntArray) -> Edges:
        """Sort edges (node, type, neighbour), which must hold the inverse of each edge; repeated edges stay."""
        num_types = len(inverse)
        if num_nodes * num_nodes * num_types >= 2**63:
            raise DataError(f"{num_nodes} nodes with {num_types} edge types are more than this program can index")
        # One integer per edge sorts three times faster than an argsort, and needs no permutation afterwards.
        key = (node.astype(np.int64) * num_types + type_) * num_nodes + neighbour
        key.sort()
        group_key, neighbour = key // max(num_nodes, 1), key % max(num_nodes, 1)
        del key
        first = np.ones(len(group_key), dtype=bool)
        first[1:] = group_key[1:] != group_key[:-1]
        group_start = np.flatnonzero(first)
        group_key = group_key[group_start]
        group_node, group_type = group_key // num_types, group_key % num_types
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
        """Every triple (h, r, t) as the edges (h, r, t) and (t, r + num_relations, h): inverse ids are made here."""
        head, relation, tail = triples.T
        return cls.build(
            np.concatenate((head, tail)),
            np.concatenate((relation, relation + num_relations)),
            np.concatenate((tail, head)),
            num_entities,
            np.roll(np.arange(2 * num_relations), num_relations),
        )

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
        """(node, type, neighbour), each int64, of the edges start .. stop in sorted order."""
        position = torch.arange(start, stop, device=self.device)
        group = torch.searchsorted(self.group_ptr, position, right=True) - 1
        return self.group_node[group], self.group_type[group].long(), self.neighbour[start:stop].long()

    def find(self, node: Tensor, type_: Tensor, neighbour: Tensor) -> Tensor:
        """Positions of the given edges in sorted order, every copy of each; what is not there is passed over."""
        wanted = torch.unique((node * self.num_types + type_) * self.num_nodes + neighbour)
        low = torch.searchsorted(self._keys, wanted)
        count = torch.searchsorted(self._keys, wanted, right=True) - low
        first = torch.repeat_interleave(low - (count.cumsum(0) - count), count)
        return first + torch.arange(int(count.sum()), device=self.device)

    def without(self, positions: Tensor) -> Edges:
        """The same graph less the edges at `positions`: one linear pass, nothing is sorted again."""
        keep = torch.ones(self.num_edges, dtype=torch.bool, device=self.device)
        keep[positions] = False
        removed_before = torch.searchsorted(positions.unique(), self.group_ptr)
        return replace(self, group_ptr=self.group_ptr - removed_before, neighbour=self.neighbour[keep])

    def to(self, device: torch.device | str) -> Edges:
        """These edges on another device; itself when they are there already."""
        if torch.device(device) == self.device:
            return self
        names = ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    @cached_property
    def _keys(self) -> Tensor:
        """One sorted integer per edge, to find edges by bisection; only training asks for it."""
        group_key = self.group_node * self.num_types + self.group_type
        per_edge = torch.repeat_interleave(group_key, self.group_ptr.diff(), output_size=self.num_edges)
        return per_edge * self.num_nodes + self.neighbour

    def __repr__(self) -> str:
        return (
            f"Edges({self.num_nodes} nodes, {self.num_edges} edges of {self.num_types} types, {self.num_groups} groups)"
        )
