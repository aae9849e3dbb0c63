"""Propagation and a whole layer in plain torch: the definition, on any device and for every message function.

    out[b, u] = Σ over edges (u, r, v) of f_r(x[b, v])

Propagation works through the edges in chunks and computes messages again in the backward pass, so that memory stays at
O(N·D + chunk·D) and no tensor with one row per edge exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.aggregation import mean_of_sum, pna
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.parameters import LayerWeights

# Messages held at once, in floats: 16 MB in float32, a few times that with the temporaries of one formula.
CHUNK_FLOATS = 1 << 22


def propagate_reference(edges: EdgeGroups, x_BND: Tensor, relation_BRW: Tensor, algebra: str) -> Tensor:
    """Sum of messages at every node, shape (B, N, D). `relation_BRW` may have B = 1: then all queries share it."""
    out_BND: Tensor = _Propagation.apply(x_BND, relation_BRW, edges, algebra)  # type: ignore[no-untyped-call]
    return out_BND


Propagate = Callable[[EdgeGroups, Tensor, Tensor, str], Tensor]


def layer_reference(
    edges: EdgeGroups,
    x_BND: Tensor,
    relation_BRW: Tensor,
    starts: Starts,
    boundary_BD: Tensor,
    weights: LayerWeights,
    propagate: Propagate = propagate_reference,
) -> Tensor:
    """New states of a relational layer, (B, N, D): what every faster way must agree with (docs/model.md §3)."""
    agg = aggregate(edges, x_BND, relation_BRW, starts, boundary_BD, weights, propagate)
    return update(x_BND, agg, weights)


def aggregate(
    edges: EdgeGroups,
    x_BND: Tensor,
    relation_BRW: Tensor,
    starts: Starts,
    boundary_BD: Tensor,
    weights: LayerWeights,
    propagate: Propagate = propagate_reference,
) -> Tensor:
    """What reaches each node: the messages of its edges and weight · boundary at the starts, (B, N, D)."""
    if weights.aggregation == "pna":
        return pna(edges, x_BND, relation_BRW, starts.spread(edges.num_nodes, boundary_BD), weights.algebra)
    sum_BND = propagate(edges, x_BND, relation_BRW, weights.algebra)
    sum_BND = sum_BND.index_put_((starts.query_S, starts.node_S), starts.rows(boundary_BD), accumulate=True)
    return sum_BND if weights.aggregation == "sum" else mean_of_sum(edges, sum_BND)


def update(x_BND: Tensor, agg: Tensor, weights: LayerWeights) -> Tensor:
    """out = x + ReLU(LayerNorm(W [x ; agg] + b)), without the concatenation."""
    D = x_BND.shape[-1]
    hidden_BND = F.linear(x_BND, weights.weight[:, :D], weights.bias) + F.linear(agg, weights.weight[:, D:])
    return x_BND + F.relu(F.layer_norm(hidden_BND, (D,), weights.norm_weight, weights.norm_bias, weights.eps))


def _chunks(edges: EdgeGroups, x_BND: Tensor, relation_BRW: Tensor) -> range:
    per_edge = x_BND.shape[0] * max(x_BND.shape[2], relation_BRW.shape[2])
    return range(0, edges.num_edges, max(1, CHUNK_FLOATS // max(per_edge, 1)))


class _Propagation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BND: Tensor, relation_BRW: Tensor, edges: EdgeGroups, algebra: str) -> Tensor:
        ctx.save_for_backward(x_BND, relation_BRW)
        ctx.edges, ctx.algebra = edges, algebra
        message = ALGEBRAS[algebra].message
        out_BND = torch.zeros_like(x_BND)
        chunks = _chunks(edges, x_BND, relation_BRW)
        for start in chunks:
            node, type_, neighbour = edges.slice(start, min(start + chunks.step, edges.num_edges))
            out_BND.index_add_(1, node, message(x_BND[:, neighbour], relation_BRW[:, type_]))
        return out_BND

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (grad_BND,) = gradients
        x_BND, relation_BRW = ctx.saved_tensors
        edges, message = ctx.edges, ALGEBRAS[ctx.algebra].message
        grad_x, grad_relation = torch.zeros_like(x_BND), torch.zeros_like(relation_BRW)
        chunks = _chunks(edges, x_BND, relation_BRW)
        for start in chunks:
            node, type_, neighbour = edges.slice(start, min(start + chunks.step, edges.num_edges))
            with torch.enable_grad():
                x_v = x_BND.detach()[:, neighbour].requires_grad_()
                r = relation_BRW.detach()[:, type_].requires_grad_()
                grad_x_v, grad_r = torch.autograd.grad(message(x_v, r), (x_v, r), grad_BND[:, node])
            grad_x.index_add_(1, neighbour, grad_x_v)
            grad_relation.index_add_(1, type_, grad_r)
        return grad_x, grad_relation, None, None
