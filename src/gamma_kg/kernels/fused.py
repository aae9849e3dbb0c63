"""A whole relational layer in one native call, without gradients: what `nn.layer.RelationalLayer.forward` defines.

B queries, N nodes, R edge types, U relation tables, D channels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.kernels import native


class LayerWeights(NamedTuple):
    """The parameters of a layer but for its relation vectors."""

    weight: Tensor  # (D, 2D): on [x ; agg]
    bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor
    eps: float


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


def layer_forward(
    edges: Edges,
    x_BND: Tensor | None,
    table_URD: Tensor,
    which_B: Tensor | None,
    source_B: Tensor,
    boundary_BD: Tensor,
    weights: LayerWeights,
    algebra: str,
    out_BND: Tensor | None = None,
    saved: Saved | None = None,
) -> Tensor:
    """New states, (B, N, D). Without `x_BND` this is the first layer, whose states are the boundary and else zero.

    `which_B` says which of the tables each query uses; without it all use the first. `out_BND` is overwritten, and
    must not be `x_BND`. `saved` is filled where a backward pass is to come, which needs `x_BND`.
    """
    (B, D), N, U = boundary_BD.shape, edges.num_nodes, table_URD.shape[0]
    out_BND = boundary_BD.new_empty(B, N, D) if out_BND is None else out_BND
    given: list[tuple[str, Tensor, tuple[int, ...]]] = [
        ("relation tables", table_URD, (U, edges.num_types, D)),
        ("result", out_BND, (B, N, D)),
        ("weight", weights.weight, (D, 2 * D)),
        ("bias", weights.bias, (D,)),
        ("norm weight", weights.norm_weight, (D,)),
        ("norm bias", weights.norm_bias, (D,)),
    ]
    if x_BND is not None:
        given.append(("states", x_BND, (B, N, D)))
    dtype, device = boundary_BD.dtype, boundary_BD.device
    for name, tensor, shape in given:
        if tensor.shape != shape or tensor.dtype != dtype or tensor.device != device:
            raise ValueError(f"{name}: wanted {shape} {dtype}, found {native.shown(tensor)}")
    source_B = _ids("source", source_B, B, N)
    which_B = None if which_B is None else _ids("which", which_B, B, U)
    if not out_BND.is_contiguous():
        raise ValueError("the result must be dense")
    if saved is not None and (x_BND is None or not all(tensor.is_contiguous() for tensor in saved)):
        raise ValueError("a backward pass needs the states, and dense tensors to save into")
    if x_BND is not None and x_BND.data_ptr() == out_BND.data_ptr():
        raise ValueError("a layer can't write its result over its states: neighbours are still to be read")
    # Dense copies, held here until the call is done.
    held = [source_B, *(tensor.contiguous() for tensor in (boundary_BD, *weights[:4]))]
    x, table = None if x_BND is None else x_BND.contiguous(), table_URD.contiguous()
    native.run_layer(native.graph_of(edges), algebra, x, table, which_B, held, weights.eps, out_BND, saved or ())
    return out_BND


def _ids(name: str, ids: Tensor, count: int, limit: int) -> Tensor:
    """The ids, dense, as the native code takes them."""
    ids = ids.contiguous()
    if ids.shape != (count,) or ids.dtype != torch.int64 or not native.are_below(ids, limit):
        raise ValueError(f"{name}: wanted {count} ids below {limit}, found {ids.tolist()[:8]} {ids.dtype}")
    return ids
