"""Who computes. One object per device, chosen once: plain torch, which is the definition, or the native CPU engine.

A graph is made ready by `prepare`; `propagate`, `layer`, `layers`, `score` compute. Which of them can run native code
for which message function, number type and layout is the native backend's own business: it falls back to what is here.

B queries, N nodes, R edge types, U relation tables, D channels, K branches, C candidates, W width of a relation vector.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.first import first_layer
from gamma_kg.kernels.parameters import LayerStack, LayerWeights, ScoreWeights, side_by_side
from gamma_kg.kernels.prepared import PreparedEdges
from gamma_kg.kernels.reference import layer_reference, propagate_reference
from gamma_kg.kernels.score import score_reference
from gamma_kg.kernels.union import part_of_union, ranges, starts_in, states_in, weights_of_query

Grouped = TypeVar("Grouped", bound=EdgeGroups)


class Backend:
    """Plain torch on a device: the definition, and what every other backend falls back to."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._prepared: weakref.WeakKeyDictionary[EdgeGroups, PreparedEdges] = weakref.WeakKeyDictionary()
        self._uploaded: weakref.WeakKeyDictionary[EdgeGroups, Any] = weakref.WeakKeyDictionary()

    def describe(self) -> str:
        """One line for people."""
        return f"plain torch on {self.device}"

    def prepare(self, edges: EdgeGroups) -> PreparedEdges:
        """The graph as it is computed on fastest, for many queries; made once and kept as long as `edges`."""
        if edges not in self._prepared:
            self._prepared[edges] = self._make_ready(edges)
        return self._prepared[edges]

    def upload(self, edges: Grouped) -> Grouped:
        """The edges on the device, as they are; sent once and kept as long as `edges`."""
        if edges.device == self.device:
            return edges
        if edges not in self._uploaded:
            self._uploaded[edges] = edges.to(self.device)
        there: Grouped = self._uploaded[edges]
        return there

    def _make_ready(self, edges: EdgeGroups) -> PreparedEdges:
        there = self.upload(edges)
        arrays = there.node_ptr, there.group_type, there.group_ptr, there.neighbour, there.inverse
        return PreparedEdges(there.num_nodes, there.num_types, *arrays)

    def propagate(self, edges: EdgeGroups, x_BND: Tensor, relation_BRW: Tensor, algebra: str) -> Tensor:
        """Σ over edges (u, r, v) of f_r(x_v), added at u; (B, N, D). Relation tables may be shared (B = 1)."""
        return propagate_reference(edges, x_BND, relation_BRW, algebra)

    def layer(
        self,
        edges: EdgeGroups,
        x_BND: Tensor | None,
        relation_BRW: Tensor,
        starts: Starts,
        boundary_BD: Tensor,
        weights: LayerWeights,
    ) -> Tensor:
        """New states of one layer, (B, N, D), differentiable in all that is not an id.

        No `x_BND` means the initial states, which are the boundary: most of them zero, which saves most of the work.
        """
        if x_BND is None:
            if ALGEBRAS[weights.algebra].bilinear and weights.aggregation == "sum":
                return first_layer(edges, relation_BRW, starts, boundary_BD, weights)
            x_BND = starts.spread(edges.num_nodes, boundary_BD)
        return layer_reference(edges, x_BND, relation_BRW, starts, boundary_BD, weights, self.propagate)

    def layers(self, edges: EdgeGroups, starts: Starts, boundary_BD: Tensor, stack: LayerStack) -> Tensor:
        """States after all layers, (B, N, D), beginning with the boundary; no gradients."""
        x_BND: Tensor | None = None
        for weights, tables in zip(stack.layers, stack.tables, strict=True):
            table_URW = side_by_side(tables)
            relation_BRW = table_URW if stack.which_B is None else table_URW[stack.which_B]
            x_BND = self.layer(edges, x_BND, relation_BRW, starts, boundary_BD, weights)
        return starts.spread(edges.num_nodes, boundary_BD) if x_BND is None else x_BND

    def score(
        self, z_KBCD: Sequence[Tensor], query_BQ: Tensor, weights: ScoreWeights, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor | None]:
        """Scores (B, C) and branch weights (B, C, K), the latter None without attention."""
        return score_reference(z_KBCD, query_BQ, weights, dropout)

    def union_layers(
        self, edges: EdgeGroups, offset_B1: Tensor, starts: Starts, boundary_BD: Tensor, stack: LayerStack
    ) -> Tensor:
        """The same for B small graphs side by side as one, query b having the nodes offset[b] : offset[b + 1]: (N, D).

        `starts` are nodes of the union. No gradients.
        """
        parts = [
            self.layers(
                part_of_union(edges, nodes),
                starts_in(starts, b, nodes),
                boundary_BD[b : b + 1],
                stack.of_queries(slice(b, b + 1)),
            )[0]
            for b, nodes in ranges(offset_B1)
        ]
        return torch.cat(parts) if parts else boundary_BD.new_zeros(0, boundary_BD.shape[1])

    def union_score(
        self, z_KND: Sequence[Tensor], offset_B1: Tensor, query_BQ: Tensor, weights: ScoreWeights
    ) -> tuple[Tensor, Tensor | None]:
        """Scores (N,) and branch weights (N, K) of all nodes of such a union."""
        parts = [
            self.score(states_in(z_KND, nodes), query_BQ[b : b + 1], weights_of_query(weights, b))
            for b, nodes in ranges(offset_B1)
        ]
        scores = [score_1n[0] for score_1n, _ in parts]
        found = [weight_1nK[0] for _, weight_1nK in parts if weight_1nK is not None]
        score_N = torch.cat(scores) if scores else query_BQ.new_zeros(0)
        if weights.attention is None:
            return score_N, None
        return score_N, torch.cat(found) if found else query_BQ.new_zeros(0, len(z_KND))


_chosen: dict[tuple[str, int | None], Backend] = {}


def backend_of(device: torch.device) -> Backend:
    """The backend of a device: the native engine on a CPU where it is built and not switched off, else plain torch."""
    index = None if device.type == "cpu" else device.index
    if index is None and device.type == "cuda":
        index = torch.cuda.current_device()
    key = device.type, index
    if key not in _chosen:
        _chosen[key] = _choose(torch.device(device.type) if index is None else torch.device(device.type, index))
    return _chosen[key]


def _choose(device: torch.device) -> Backend:
    from gamma_kg.kernels.native.backend import NativeBackend
    from gamma_kg.kernels.native.loading import module

    return NativeBackend(device) if device.type == "cpu" and module() is not None else Backend(device)


@contextmanager
def plain_torch() -> Iterator[Backend]:
    """Plain torch on the CPU for a while, whatever is built: to compare with."""
    before, plain = backend_of(torch.device("cpu")), Backend(torch.device("cpu"))
    _chosen["cpu", None] = plain
    try:
        yield plain
    finally:
        _chosen["cpu", None] = before
