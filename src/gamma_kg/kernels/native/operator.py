"""Propagation as one torch operator: autograd, torch.compile and export see `gamma_kg::propagate`, not its inside."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.kernels.native.edge_arrays import EdgeArrays, arrays, graph_at
from gamma_kg.kernels.native.propagation import propagate_backward, propagate_forward, require


@torch.library.custom_op("gamma_kg::propagate", mutates_args=())
def _propagate(
    x: Tensor,
    relation: Tensor,
    node_ptr: Tensor,
    group_type: Tensor,
    group_ptr: Tensor,
    neighbour: Tensor,
    inverse: Tensor,
    algebra: str,
) -> Tensor:
    require(x, relation, algebra)
    graph = graph_at(EdgeArrays(node_ptr, group_type, group_ptr, neighbour, inverse))
    return propagate_forward(graph, x, relation, algebra)


@torch.library.custom_op("gamma_kg::propagate_backward", mutates_args=())
def _propagate_backward(
    gradient: Tensor,
    x: Tensor,
    relation: Tensor,
    node_ptr: Tensor,
    group_type: Tensor,
    group_ptr: Tensor,
    neighbour: Tensor,
    inverse: Tensor,
    algebra: str,
) -> tuple[Tensor, Tensor]:
    require(x, relation, algebra)
    graph = graph_at(EdgeArrays(node_ptr, group_type, group_ptr, neighbour, inverse))
    return propagate_backward(graph, gradient, x, relation, algebra)


@_propagate.register_fake
def _(x: Tensor, relation: Tensor, *rest: Any) -> Tensor:
    return x.new_empty(x.shape)


@_propagate_backward.register_fake
def _(gradient: Tensor, x: Tensor, relation: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), relation.new_empty(relation.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.algebra = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    grad_x, grad_relation = _propagate_backward(gradient, *ctx.saved_tensors, ctx.algebra)
    return grad_x, grad_relation, None, None, None, None, None, None


_propagate.register_autograd(_backward, setup_context=_setup_context)


def propagate_operator(edges: EdgeGroups, x_BND: Tensor, relation_BRD: Tensor, algebra: str) -> Tensor:
    """`propagate` as an operator; the caller has asked `supports`."""
    out: Tensor = _propagate(x_BND, relation_BRD, *arrays(edges), algebra)
    return out
