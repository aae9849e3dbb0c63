"""Whole relational layers in one native call, without gradients: what `kernels.reference.layer_reference` defines.

B queries, N nodes, R edge types, U relation tables, D channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.native.graphs import are_below, are_starts, graph_of
from gamma_kg.kernels.native.loading import shown, typed
from gamma_kg.kernels.native.propagation import ALGEBRA_IDS
from gamma_kg.kernels.parameters import LayerWeights


class LayerJob(NamedTuple):
    """One layer of several: its relation vectors, its other parameters, and where its states go."""

    table_URD: Tensor
    weights: LayerWeights
    out_BND: Tensor


class Saved(NamedTuple):
    """What a backward pass wants to know of a forward pass; filled by it."""

    agg: Tensor  # (B, N, D): what was propagated, with the boundary
    normalised: Tensor  # (B, N, D): before the norm's weight and bias
    scale: Tensor  # (B, N): 1 / standard deviation


def layers_forward(
    edges: EdgeGroups,
    x_BND: Tensor | None,
    jobs: Sequence[LayerJob],
    which_B: Tensor | None,
    starts: Starts,
    boundary_BD: Tensor,
    saved: Saved | None = None,
) -> Tensor:
    """States after the last layer, (B, N, D). Without `x_BND` they begin as the boundary, and else zero.

    `which_B` says which of its tables each query uses; without it all use the first. A layer must not write where it
    reads. `saved` is filled where a backward pass is to come, which needs `x_BND` and a single layer.
    """
    (B, D), N, U = boundary_BD.shape, edges.num_nodes, jobs[0].table_URD.shape[0]
    shapes = (U, edges.num_types, D), (D, 2 * D), (D,), (D,), (D,), (B, N, D)
    dtype, device = boundary_BD.dtype, boundary_BD.device
    # Dense copies, held here until the call is done.
    dense = [[tensor.contiguous() for tensor in (job.table_URD, *job.weights[:4])] for job in jobs]
    given = list(zip(_JOB_NAMES, shapes, [*zip(*dense, strict=True), [job.out_BND for job in jobs]], strict=True))
    if x_BND is not None:
        given.append(("states", (B, N, D), [x_BND]))
    for name, shape, tensors in given:
        for tensor in tensors:
            if tensor.shape != shape or tensor.dtype != dtype or tensor.device != device:
                raise ValueError(f"{name}: wanted {shape} {dtype}, found {shown(tensor)}")
    starts = _checked_starts(starts, B, N, dtype)
    which_B = None if which_B is None else _ids("which", which_B, B, U)
    if saved is not None and (x_BND is None or len(jobs) > 1 or not all(tensor.is_contiguous() for tensor in saved)):
        raise ValueError("a backward pass needs the states, a single layer, and dense tensors to save into")
    states = None if x_BND is None else x_BND.contiguous()
    read = states
    for job, tensors in zip(jobs, dense, strict=True):
        if not job.out_BND.is_contiguous():
            raise ValueError("the result must be dense")
        if read is not None and read.data_ptr() == job.out_BND.data_ptr():
            raise ValueError("a layer can't write its result over its states: neighbours are still to be read")
        tensors.append(job.out_BND)
        read = job.out_BND
    eps = [job.weights.eps for job in jobs]
    boundary_BD, graph = boundary_BD.contiguous(), graph_of(edges)
    _run(graph, jobs[0].weights.algebra, states, which_B, starts, boundary_BD, dense, eps, saved or ())
    return jobs[-1].out_BND


_JOB_NAMES = ("relation tables", "weight", "bias", "norm weight", "norm bias", "result")


def _ids(name: str, ids: Tensor, count: int, limit: int) -> Tensor:
    """The ids, dense, as the native code takes them."""
    ids = ids.contiguous()
    if ids.shape != (count,) or ids.dtype != torch.int64 or not are_below(ids, limit):
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
        or not are_starts(node_S, offset_B1, num_nodes)
    ):
        raise ValueError(
            f"starts: wanted those of {count} queries, each with ascending distinct ids below {num_nodes}, found "
            f"{starts!r}: {node_S.tolist()[:8]} {node_S.dtype}"
        )
    return Starts(node_S, weight_S, offset_B1)


def _run(
    graph: object,
    algebra: str,
    x_BND: Tensor | None,
    which_B: Tensor | None,
    starts: Starts,
    boundary_BD: Tensor,
    jobs: Sequence[Sequence[Tensor]],
    eps: Sequence[float],
    saved: Sequence[Tensor],
) -> None:
    """Layers one after the other; everything has been checked.

    A job: relation tables, weight, bias, norm weight, norm bias, result. `saved`: nothing, or what a backward pass
    wants of a single layer: aggregates, normalised values, scales.
    """
    typed("layers", boundary_BD)(
        graph, ALGEBRA_IDS[algebra], *boundary_BD.shape, 0 if x_BND is None else x_BND.data_ptr(),
        0 if which_B is None else which_B.data_ptr(), starts.offset_B1.data_ptr(), starts.node_S.data_ptr(),
        0 if starts.weight_S is None else starts.weight_S.data_ptr(), boundary_BD.data_ptr(),
        [[tensor.data_ptr() for tensor in job] for job in jobs], eps, torch.get_num_threads(),
        *([tensor.data_ptr() for tensor in saved] or (0, 0, 0)),
    )  # fmt: skip
