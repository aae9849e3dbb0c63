"""Whole relational layers in one native call, without gradients: what `nn.layer.RelationalLayer.forward` defines.

B queries, N nodes, R edge types, U relation tables, D channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import native


class LayerWeights(NamedTuple):
    """The parameters of a layer but for its relation vectors."""

    weight: Tensor  # (D, 2D): on [x ; agg]
    bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor
    eps: float


class Stage(NamedTuple):
    """One layer of several: its relation vectors, its other parameters, and where its states go."""

    table_URD: Tensor
    weights: LayerWeights
    out_BND: Tensor


class Saved(NamedTuple):
    """What a backward pass wants to know of a forward pass; filled by it."""

    agg: Tensor  # (B, N, D): what was propagated, with the boundary
    normalised: Tensor  # (B, N, D): before the norm's weight and bias
    scale: Tensor  # (B, N): 1 / standard deviation


def can_fuse(states: Tensor, algebra: str) -> bool:
    """Whether the fused layer can stand in: nothing asks for a gradient, and the native path knows the algebra."""
    return (
        not torch.is_grad_enabled() and not torch.compiler.is_compiling() and native.supports(states, states, algebra)
    )


def layers_forward(
    edges: Edges,
    x_BND: Tensor | None,
    stages: Sequence[Stage],
    which_B: Tensor | None,
    starts: Starts,
    boundary_BD: Tensor,
    algebra: str,
    saved: Saved | None = None,
) -> Tensor:
    """States after the last layer, (B, N, D). Without `x_BND` they begin as the boundary, and else zero.

    `which_B` says which of its tables each query uses; without it all use the first. A layer must not write where it
    reads. `saved` is filled where a backward pass is to come, which needs `x_BND` and a single layer.
    """
    (B, D), N, U = boundary_BD.shape, edges.num_nodes, stages[0].table_URD.shape[0]
    shapes = (U, edges.num_types, D), (D, 2 * D), (D,), (D,), (D,), (B, N, D)
    dtype, device = boundary_BD.dtype, boundary_BD.device
    # Dense copies, held here until the call is done.
    dense = [[tensor.contiguous() for tensor in (stage.table_URD, *stage.weights[:4])] for stage in stages]
    given = list(
        zip(_STAGE_NAMES, shapes, [*zip(*dense, strict=True), [stage.out_BND for stage in stages]], strict=True)
    )
    if x_BND is not None:
        given.append(("states", (B, N, D), [x_BND]))
    for name, shape, tensors in given:
        for tensor in tensors:
            if tensor.shape != shape or tensor.dtype != dtype or tensor.device != device:
                raise ValueError(f"{name}: wanted {shape} {dtype}, found {native.shown(tensor)}")
    starts = _checked_starts(starts, B, N, dtype)
    which_B = None if which_B is None else _ids("which", which_B, B, U)
    if saved is not None and (x_BND is None or len(stages) > 1 or not all(tensor.is_contiguous() for tensor in saved)):
        raise ValueError("a backward pass needs the states, a single layer, and dense tensors to save into")
    states = None if x_BND is None else x_BND.contiguous()
    read = states
    for stage, tensors in zip(stages, dense, strict=True):
        if not stage.out_BND.is_contiguous():
            raise ValueError("the result must be dense")
        if read is not None and read.data_ptr() == stage.out_BND.data_ptr():
            raise ValueError("a layer can't write its result over its states: neighbours are still to be read")
        tensors.append(stage.out_BND)
        read = stage.out_BND
    eps = [stage.weights.eps for stage in stages]
    boundary_BD, graph = boundary_BD.contiguous(), native.graph_of(edges)
    native.run_layers(graph, algebra, states, which_B, starts, boundary_BD, dense, eps, saved or ())
    return stages[-1].out_BND


_STAGE_NAMES = ("relation tables", "weight", "bias", "norm weight", "norm bias", "result")


def _ids(name: str, ids: Tensor, count: int, limit: int) -> Tensor:
    """The ids, dense, as the native code takes them."""
    ids = ids.contiguous()
    if ids.shape != (count,) or ids.dtype != torch.int64 or not native.are_below(ids, limit):
        raise ValueError(f"{name}: wanted {count} ids below {limit}, found {ids.tolist()[:8]} {ids.dtype}")
    return ids


def _checked_starts(starts: Starts, count: int, num_nodes: int, dtype: torch.dtype) -> Starts:
    """The starts, dense, as the native code takes them."""
    node_S, offset_B1 = starts.node_S.contiguous(), starts.offset_B1.contiguous()
    weight_S = None if starts.weight_S is None else starts.weight_S.detach().to(dtype).contiguous()
    if (
        len(starts) != count
        or node_S.dtype != torch.int64
        or offset_B1.dtype != torch.int64
        or not (weight_S is None or weight_S.shape == node_S.shape)
        or not native.are_starts(node_S, offset_B1, num_nodes)
    ):
        raise ValueError(
            f"starts: wanted those of {count} queries, each with ascending distinct ids below {num_nodes}, found "
            f"{starts!r}: {node_S.tolist()[:8]} {node_S.dtype}"
        )
    return Starts(node_S, weight_S, offset_B1)
