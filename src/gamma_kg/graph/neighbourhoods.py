"""The part of a graph around the start of a query, as a graph of its own: what a local answer is computed on.

A walker begins at the query's starts, follows a random edge at every step, and goes back to its start with a fixed
chance. Where it is most often is near (personalised PageRank, computed by forward push: Andersen, Chung, Lang 2006).
The nearest entities come in, one after the other, until the facts among them are as many as were asked for. The
budget is in facts, since these cost time, and since 2,000 entities are 50,000 facts of one graph and 2,500 of another.

This file is the definition. The native routine (src/csrc/neighbourhood.cpp) does the same in the same order.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.edges import Edges

RESTART = 0.15
ROUNDS = 64


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """B small graphs side by side as one graph: nodes are places in it, edge types those of the whole graph.

    The nodes of query b are offset[b] .. offset[b + 1], the nearest first.
    """

    edges: Edges
    offset_B1: Tensor  # int64 [B + 1]
    entity_N: Tensor  # int64: which node of the whole graph each one is

    def __len__(self) -> int:
        """How many queries there are."""
        return len(self.offset_B1) - 1

    def split(self) -> Iterator[Edges]:
        """Each neighbourhood as a graph of its own."""
        node_ptr, group_ptr = self.edges.node_ptr, self.edges.group_ptr
        for first, last in zip(self.offset_B1[:-1].tolist(), self.offset_B1[1:].tolist(), strict=True):
            group, end = int(node_ptr[first]), int(node_ptr[last])
            edge = int(group_ptr[group])
            yield Edges(
                last - first,
                self.edges.num_types,
                node_ptr[first : last + 1] - group,
                self.edges.group_type[group:end],
                group_ptr[group : end + 1] - edge,
                self.edges.neighbour[edge : int(group_ptr[end])] - first,
                self.edges.inverse,
            )

    def repeated(self, which_B: Tensor) -> Neighbourhoods:
        """The neighbourhoods with these numbers, in this order: queries that start alike have the same one."""
        parts, entities = list(self.split()), self.entity_N.split(self.offset_B1.diff().tolist())
        chosen = [parts[u] for u in which_B.tolist()]
        node, group, edge = (
            list(accumulate(sizes, initial=0))
            for sizes in zip(*((part.num_nodes, part.num_groups, part.num_edges) for part in chosen), strict=True)
        )
        edges = Edges(
            node[-1],
            self.edges.num_types,
            torch.cat([*(part.node_ptr[:-1] + at for part, at in zip(chosen, group, strict=False)), _one(group[-1])]),
            torch.cat([part.group_type for part in chosen]),
            torch.cat([*(part.group_ptr[:-1] + at for part, at in zip(chosen, edge, strict=False)), _one(edge[-1])]),
            torch.cat([part.neighbour + at for part, at in zip(chosen, node, strict=False)]),
            self.edges.inverse,
        )
        return Neighbourhoods(edges, torch.tensor(node), torch.cat([entities[u] for u in which_B.tolist()]))

    def places(self, query_S: Tensor, entity_S: Tensor) -> Tensor:
        """Where entities stand in the neighbourhoods of the given queries; -1: not in there."""
        owner_N = torch.repeat_interleave(torch.arange(len(self)), self.offset_B1.diff())
        span = int(max(self.entity_N.max(), entity_S.max())) + 1 if len(self.entity_N) and len(entity_S) else 1
        key_N, order_N = (owner_N * span + self.entity_N).sort()
        if not len(key_N):
            return torch.full_like(entity_S, -1)
        wanted_S = query_S * span + entity_S
        at_S = torch.searchsorted(key_N, wanted_S).clamp(max=len(key_N) - 1)
        return torch.where(key_N[at_S] == wanted_S, order_N[at_S], -1)

    def __repr__(self) -> str:
        return f"Neighbourhoods({len(self)} queries, {len(self.entity_N)} entities, {self.edges.num_edges} edges)"


def _one(number: int) -> Tensor:
    return torch.tensor([number])


Found = list[tuple[int, int, int]]  # edges (place, type, place)


def grow_plain(
    edges: Edges, node_S: Tensor, weight_S: Tensor, offset_B1: Tensor, triples: int, restart: float = RESTART
) -> Neighbourhoods:
    """The neighbourhood of each query, with at most `triples` facts, around its weighted starts."""
    entity: list[int] = []
    found: Found = []
    offset = [0]
    for first, last in zip(offset_B1[:-1].tolist(), offset_B1[1:].tolist(), strict=True):
        near, inside = _Growth(edges, triples, restart).grow(node_S[first:last].tolist(), weight_S[first:last].tolist())
        found.extend((offset[-1] + at, type_, offset[-1] + other) for at, type_, other in inside)
        entity.extend(near)
        offset.append(len(entity))
    node, type_, neighbour = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return Neighbourhoods(
        Edges.build(node, type_, neighbour, len(entity), edges.inverse.numpy()),
        torch.tensor(offset),
        torch.tensor(entity, dtype=torch.long),
    )


class _Growth:
    """One query: the walk, then who comes in."""

    def __init__(self, edges: Edges, triples: int, restart: float) -> None:
        self.node_ptr, self.group_ptr = edges.node_ptr.numpy(), edges.group_ptr.numpy()
        self.group_type, self.neighbour = edges.group_type.numpy(), edges.neighbour.numpy()
        self.inverse: list[int] = edges.inverse.tolist()
        self.most, self.restart = 2 * triples, restart
        self.estimate: dict[int, float] = defaultdict(float)
        self.residual: dict[int, float] = {}  # in the order in which nodes were first seen

    def grow(self, starts: list[int], weights: list[float]) -> tuple[list[int], Found]:
        """The nodes that come in, in order, and the edges among them."""
        for node, weight in zip(starts, weights, strict=True):
            self.residual[node] = self.residual.get(node, 0.0) + weight
        self._walk()
        is_start = set(starts)
        order = [
            (node not in is_start, -(self.estimate[node] + self.restart * rest), node)
            for node, rest in self.residual.items()
        ]
        heapq.heapify(order)
        place: dict[int, int] = {}
        found: Found = []
        while order:
            node = heapq.heappop(order)[2]
            place[node] = len(place)
            more = self._edges_between(node, place)
            if len(found) + len(more) > self.most and len(place) > 1:
                del place[node]
                break
            found += more
        return list(place), found

    def _walk(self) -> None:
        """Push whoever has a residual of at least `least` per edge; less and less, until there are edges enough."""
        enough = max(self.most, 1)
        least, volume = 4.0 / enough, 0
        pushed: set[int] = set()
        for _ in range(ROUNDS):
            if volume >= enough or all(node in pushed or not self._degree(node) for node in self.residual):
                return
            queue = [n for n, rest in self.residual.items() if self._degree(n) and rest >= least * self._degree(n)]
            is_queued = set(queue)
            for node in queue:  # grows while it is gone through
                if volume >= 2 * enough:
                    break
                is_queued.discard(node)
                rest, degree = self.residual[node], self._degree(node)
                share = (1 - self.restart) * rest / degree
                volume += 0 if node in pushed else min(degree, enough)
                self.estimate[node] += self.restart * rest
                self.residual[node] = 0.0
                pushed.add(node)
                # Of a hub with more edges than fit only every n-th is followed.
                for other in self._neighbours(node)[:: -(-degree // enough)].tolist():
                    self.residual[other] = self.residual.get(other, 0.0) + share
                    if other not in is_queued and self.residual[other] >= least * self._degree(other):
                        is_queued.add(other)
                        queue.append(other)
            least /= 2

    def _edges_between(self, node: int, place: dict[int, int]) -> Found:
        """All edges, both ways, between a node and those that have a place, itself included."""
        found: Found = []
        for group in range(self.node_ptr[node], self.node_ptr[node + 1]):
            type_ = int(self.group_type[group])
            for other in self.neighbour[self.group_ptr[group] : self.group_ptr[group + 1]].tolist():
                if other in place:
                    found.append((place[node], type_, place[other]))
                    if other != node:
                        found.append((place[other], self.inverse[type_], place[node]))
        return found

    def _neighbours(self, node: int) -> NDArray[np.int32]:
        return self.neighbour[self.group_ptr[self.node_ptr[node]] : self.group_ptr[self.node_ptr[node + 1]]]

    def _degree(self, node: int) -> int:
        return len(self._neighbours(node))
