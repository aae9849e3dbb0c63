"""Propagation in plain torch: the definition of the result, on any device and for every message function.

    out[b, u] = Σ over edges (u, r, v) of f_r(x[b, v])

Works through the edges in chunks and computes messages again in the backward pass, so that memory stays at
O(N·D + chunk·D) and no tensor with one row per edge exists.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.kernels.algebra import ALGEBRAS

# Messages held at once, in floats: 16 MB in float32, a few times that with the temporaries of one formula.
CHUNK_FLOATS = 1 << 22


def propagate_reference(edges: Edges, x_BND: Tensor, relation_BRW: Tensor, algebra: str) -> Tensor:
    """Sum of messages at every node, shape (B, N, D). `relation_BRW` may have B = 1: then all queries share it."""
    out_BND: Tensor = _Propagation.apply(x_BND, relation_BRW, edges, algebra)  # type: ignore[no-untyped-call]
    return out_BND


def _chunks(edges: Edges, x_BND: Tensor, relation_BRW: Tensor) -> range:
    per_edge = x_BND.shape[0] * max(x_BND.shape[2], relation_BRW.shape[2])
    return range(0, edges.num_edges, max(1, CHUNK_FLOATS // max(per_edge, 1)))


class _Propagation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BND: Tensor, relation_BRW: Tensor, edges: Edges, algebra: str) -> Tensor:
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
