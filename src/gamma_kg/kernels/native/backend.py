"""The native CPU engine as a backend. What it can't take goes the way of plain torch.

B queries, N nodes, R edge types, U relation tables, D channels, K branches, C candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.backend import Backend
from gamma_kg.kernels.native.edge_arrays import graph_of, renumbered
from gamma_kg.kernels.native.layers import LayerJob, layers_forward, neighbourhoods_forward
from gamma_kg.kernels.native.loading import describe, empty_states
from gamma_kg.kernels.native.propagation import propagate_forward, supports
from gamma_kg.kernels.native.score import can_score, score_candidates
from gamma_kg.kernels.native.training import layer_with_gradients
from gamma_kg.kernels.parameters import LayerStack, LayerWeights, ScoreWeights
from gamma_kg.kernels.prepared import PreparedEdges

# States of the queries that go through all layers together: about half of a third-level cache.
CACHE_BYTES = 16 << 20


class NativeBackend(Backend):
    """Kernels in C++ for sums over edges with a bilinear product, float32 and float64."""

    def describe(self) -> str:
        return describe()

    def _make_ready(self, edges: EdgeGroups) -> PreparedEdges:
        return renumbered(edges)

    def propagate(self, edges: EdgeGroups, x_BND: Tensor, relation_BRW: Tensor, algebra: str) -> Tensor:
        if not supports(x_BND, relation_BRW, algebra):
            return super().propagate(edges, x_BND, relation_BRW, algebra)
        wants_gradient = torch.is_grad_enabled() and (x_BND.requires_grad or relation_BRW.requires_grad)
        if wants_gradient or torch.compiler.is_compiling():
            # Only here: to define an operator loads the compiler of torch, a second or more.
            from gamma_kg.kernels.native.operator import propagate_operator

            return propagate_operator(edges, x_BND, relation_BRW, algebra)
        return propagate_forward(graph_of(edges), x_BND, relation_BRW, algebra)

    def layer(
        self,
        edges: EdgeGroups,
        x_BND: Tensor | None,
        relation_BRW: Tensor,
        starts: Starts,
        boundary_BD: Tensor,
        weights: LayerWeights,
    ) -> Tensor:
        if not self._takes(boundary_BD, relation_BRW, weights) or (x_BND is None and torch.is_grad_enabled()):
            return super().layer(edges, x_BND, relation_BRW, starts, boundary_BD, weights)
        if torch.is_grad_enabled():
            assert x_BND is not None
            return layer_with_gradients(edges, x_BND, relation_BRW, starts, boundary_BD, weights)
        which_B = torch.arange(len(starts)) if len(relation_BRW) > 1 else None
        out_BND = boundary_BD.new_empty(len(starts), edges.num_nodes, boundary_BD.shape[1])
        job = LayerJob(relation_BRW, weights, out_BND)
        return layers_forward(edges, x_BND, [job], which_B, starts, boundary_BD)

    def layers(self, edges: EdgeGroups, starts: Starts, boundary_BD: Tensor, stack: LayerStack) -> Tensor:
        if not self._takes_all(boundary_BD, stack):
            return super().layers(edges, starts, boundary_BD, stack)
        return self._layers(edges, starts, boundary_BD, stack)

    def _layers(
        self, edges: EdgeGroups, starts: Starts, boundary_BD: Tensor, stack: LayerStack, through_nodes: bool = True
    ) -> Tensor:
        layers = stack.layers
        # All layers for a few queries, whose states stay in cache, then the next few.
        (B, D), N = boundary_BD.shape, edges.num_nodes
        out_BND = empty_states(boundary_BD, B, N, D)
        few = max(1, CACHE_BYTES // max(1, 2 * N * D * boundary_BD.element_size()))
        spare = [empty_states(boundary_BD, min(few, B), N, D) for _ in range(min(2, len(layers) - 1))]
        for first in range(0, B, few):
            part = slice(first, min(first + few, B))
            count = part.stop - part.start
            targets = [spare[step % 2][:count] for step in range(len(layers) - 1)] + [out_BND[part]]
            jobs = [LayerJob(*job) for job in zip(stack.tables, layers, targets, strict=True)]
            which_B = stack.of_queries(part).which_B
            layers_forward(edges, None, jobs, which_B, starts[part], boundary_BD[part], through_nodes=through_nodes)
        return out_BND

    def score(
        self, z_KBCD: Sequence[Tensor], query_BQ: Tensor, weights: ScoreWeights, dropout: float = 0.0
    ) -> tuple[Tensor, Tensor | None]:
        if dropout or torch.is_grad_enabled() or torch.compiler.is_compiling() or not can_score(z_KBCD):
            return super().score(z_KBCD, query_BQ, weights, dropout)
        return score_candidates(z_KBCD, query_BQ, weights)

    def union_layers(
        self, edges: EdgeGroups, offset_B1: Tensor, starts: Starts, boundary_BD: Tensor, stack: LayerStack
    ) -> Tensor:
        if not self._takes_all(boundary_BD, stack):
            return super().union_layers(edges, offset_B1, starts, boundary_BD, stack)
        if len(starts) == 1:  # all threads share the one query, whose bits are those that it has in company
            return self._layers(edges, starts, boundary_BD, stack, through_nodes=False)[0]
        out_ND = empty_states(boundary_BD, edges.num_nodes, boundary_BD.shape[1])
        return neighbourhoods_forward(edges, offset_B1, starts, boundary_BD, stack, out_ND)

    def union_score(
        self, z_KND: Sequence[Tensor], offset_B1: Tensor, query_BQ: Tensor, weights: ScoreWeights
    ) -> tuple[Tensor, Tensor | None]:
        z_K1ND = [z_ND[None] for z_ND in z_KND]
        if torch.is_grad_enabled() or torch.compiler.is_compiling() or not can_score(z_K1ND):
            return super().union_score(z_KND, offset_B1, query_BQ, weights)
        score_1N, weight_1NK = score_candidates(z_K1ND, query_BQ, weights, offset_B1)
        return score_1N[0], None if weight_1NK is None else weight_1NK[0]

    def _takes_all(self, states: Tensor, stack: LayerStack) -> bool:
        if not stack.layers or torch.is_grad_enabled():
            return False
        firsts = [tables[0] for tables in stack.tables]
        return all(self._takes(states, *layer) for layer in zip(firsts, stack.layers, strict=True))

    def _takes(self, states: Tensor, relation: Tensor, weights: LayerWeights) -> bool:
        return (
            weights.aggregation == "sum"
            and not torch.compiler.is_compiling()
            and supports(states, relation, weights.algebra)
        )
