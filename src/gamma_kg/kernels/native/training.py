"""A whole relational layer with gradients: what `kernels.reference.layer_reference` defines, in few passes over memory.

Forward keeps the aggregates and the normalised values; backward goes through ReLU, LayerNorm, the linear map and the
residual in one pass, then through propagation. B queries, N nodes, R edge types, D channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.native.arrays import array, result
from gamma_kg.kernels.native.edge_arrays import graph_of
from gamma_kg.kernels.native.layers import LayerJob, Saved, layers_forward
from gamma_kg.kernels.native.loading import loaded
from gamma_kg.kernels.native.propagation import propagate_backward
from gamma_kg.kernels.parameters import LayerWeights
from gamma_kg.machine.threads import engine_threads


def layer_with_gradients(
    edges: EdgeGroups,
    x_BND: Tensor,
    relation_BRD: Tensor,
    starts: Starts,
    boundary_BD: Tensor,
    weights: LayerWeights,
) -> Tensor:
    """New states, (B, N, D), differentiable in all that is not an id. Relation tables may be shared (B = 1)."""
    out: Tensor = _Layer.apply(  # type: ignore[no-untyped-call]
        edges, weights.algebra, weights.eps, starts, x_BND, relation_BRD, starts.weight_S, boundary_BD, *weights[:4]
    )
    return out


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        edges: EdgeGroups,
        algebra: str,
        eps: float,
        starts: Starts,
        x_BND: Tensor,
        relation_BRD: Tensor,
        weight_S: Tensor | None,
        boundary_BD: Tensor,
        weight: Tensor,
        bias: Tensor,
        norm_weight: Tensor,
        norm_bias: Tensor,
    ) -> Tensor:
        which_B = torch.arange(len(starts)) if len(relation_BRD) > 1 else None
        out, agg, normalised = (x_BND.new_empty(x_BND.shape) for _ in range(3))
        saved = Saved(agg, normalised, x_BND.new_empty(x_BND.shape[:2]))
        weights = LayerWeights(weight, bias, norm_weight, norm_bias, eps, algebra)
        job = LayerJob(relation_BRD, weights, out)
        out_BND = layers_forward(edges, x_BND, [job], which_B, starts, boundary_BD, saved)
        ctx.save_for_backward(x_BND, relation_BRD, weight_S, boundary_BD, weight, norm_weight, norm_bias, *saved)
        ctx.edges, ctx.algebra = edges, algebra
        ctx.query_S, ctx.node_S = starts.query_S, starts.node_S
        return out_BND

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x_BND, relation_BRD, weight_S, boundary_BD, weight, norm_weight, norm_bias, *saved = ctx.saved_tensors
        agg_BND, normalised, scale = saved
        D = x_BND.shape[-1]
        linear, grad_x, grad_agg, sums = update_backward(
            gradients[0].contiguous(), normalised, scale, weight, norm_weight, norm_bias
        )
        by_output = linear.view(-1, D).T
        grad_weight = torch.cat([by_output @ part.reshape(-1, D) for part in (x_BND, agg_BND)], dim=1)
        grad_boundary, grad_weight_S = _at_starts(grad_agg, ctx.query_S, ctx.node_S, weight_S, boundary_BD)
        grad_x, grad_relation = propagate_backward(
            graph_of(ctx.edges), grad_agg, x_BND, relation_BRD, ctx.algebra, add_to=grad_x
        )
        grad_norm_weight, grad_norm_bias, grad_bias = sums.sum(0)
        parameters = grad_weight, grad_bias, grad_norm_weight, grad_norm_bias
        return None, None, None, None, grad_x, grad_relation, grad_weight_S, grad_boundary, *parameters


def _at_starts(
    grad_agg: Tensor, query_S: Tensor, node_S: Tensor, weight_S: Tensor | None, boundary_BD: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Gradients of the boundary and of the weights of the starts."""
    grad_SD, grad_BD = grad_agg[query_S, node_S], torch.zeros_like(boundary_BD)
    if weight_S is None:
        return grad_BD.index_add_(0, query_S, grad_SD), None
    grad_weight_S = (grad_SD * boundary_BD[query_S]).sum(-1)
    return grad_BD.index_add_(0, query_S, grad_SD * weight_S[:, None]), grad_weight_S


def update_backward(
    gradient_BND: Tensor,
    normalised_BND: Tensor,
    scale_BN: Tensor,
    weight: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Backward of a layer but for propagation: gradients of the linear result, of x (with the residual) and of agg.

    The fourth are parts (P, 3, D) of the gradients of norm weight, norm bias and bias, to be summed.
    """
    threads, D, dtype = engine_threads(), gradient_BND.shape[-1], gradient_BND.dtype
    rows = gradient_BND.numel() // max(D, 1)
    parts = 1 if threads == 1 else max(1, min(4 * threads, rows // 256))
    linear, grad_x, grad_agg = (gradient_BND.new_empty(gradient_BND.shape) for _ in range(3))
    sums = gradient_BND.new_zeros(parts, 3, D)
    given = gradient_BND.view(rows, D), normalised_BND.view(rows, D), scale_BN.view(rows)
    written = linear.view(rows, D), grad_x.view(rows, D), grad_agg.view(rows, D), sums
    loaded().update_backward(
        *(array("update_backward", tensor, dtype) for tensor in (*given, weight, norm_weight, norm_bias)),
        *(result("update_backward", tensor, dtype) for tensor in written),
        threads,
    )
    return linear, grad_x, grad_agg, sums
