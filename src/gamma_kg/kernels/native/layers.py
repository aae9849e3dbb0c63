"""Whole relational layers in one native call, without gradients: what `kernels.reference.layer_reference` defines.

B queries, N nodes, R edge types, U relation tables, D channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.native.arrays import AnyArray, array, maybe, result
from gamma_kg.kernels.native.checked import checked_ids, checked_offsets, checked_starts
from gamma_kg.kernels.native.edge_arrays import graph_of
from gamma_kg.kernels.native.loading import loaded
from gamma_kg.kernels.native.propagation import ALGEBRA_IDS, require_channels
from gamma_kg.kernels.parameters import LayerStack, LayerWeights, RelationTables
from gamma_kg.machine import meanwhile
from gamma_kg.machine.threads import engine_threads


class LayerJob(NamedTuple):
    """One layer of several: its relation vectors, its other parameters, and where its states go."""

    tables: RelationTables
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
    through_nodes: bool = True,
) -> Tensor:
    """States after the last layer, (B, N, D). Without `x_BND` they begin as the boundary, and else zero.

    `which_B` says which of its tables each query uses; without it all use the first. A layer must not write where it
    reads. `saved` is filled where a backward pass is to come, which needs `x_BND` and a single layer. Threads may share
    the sum at a node with very many edges, unless `through_nodes` is off: then it has the bits of a sum by one thread.
    """
    B, dtype, algebra = len(boundary_BD), boundary_BD.dtype, jobs[0].weights.algebra
    require_channels(algebra, boundary_BD.shape[1])
    if saved is not None and (x_BND is None or len(jobs) > 1):
        raise ValueError("a backward pass needs the states and a single layer")
    states = maybe("states", x_BND, dtype)
    read = states
    results = [result("result", job.out_BND, dtype) for job in jobs]
    for written in results:
        if read is not None and read.ctypes.data == written.ctypes.data:
            raise ValueError("a layer can't write its result over its states: neighbours are still to be read")
        read = written
    which = None if which_B is None else checked_ids("which", which_B, B, len(jobs[0].tables))
    meanwhile.run()
    loaded().layers(
        graph_of(edges), ALGEBRA_IDS[algebra], states, which, *checked_starts(starts, B, edges.num_nodes, dtype),
        array("boundary", boundary_BD, dtype), [_arrays(job.tables, job.weights, dtype) for job in jobs],
        [job.weights.eps for job in jobs], results, [result("saved", tensor, dtype) for tensor in saved or ()],
        through_nodes, engine_threads(),
    )  # fmt: skip
    return jobs[-1].out_BND


def neighbourhoods_forward(
    edges: EdgeGroups,
    offset_B1: Tensor,
    starts: Starts,
    boundary_BD: Tensor,
    stack: LayerStack,
    out_ND: Tensor,
) -> Tensor:
    """States after all layers, (N, D), of B small graphs side by side: the nodes of query b are offset[b]:offset[b+1].

    One query at a time goes through all layers in one thread.
    """
    B, dtype, algebra = len(boundary_BD), boundary_BD.dtype, stack.layers[0].algebra
    require_channels(algebra, boundary_BD.shape[1])
    which = None if stack.which_B is None else checked_ids("which", stack.which_B, B, len(stack.tables[0]))
    meanwhile.run()
    is_sound = loaded().neighbourhoods(
        graph_of(edges), ALGEBRA_IDS[algebra], checked_offsets("offsets", offset_B1, edges.num_nodes), which,
        *checked_starts(starts, B, edges.num_nodes, dtype), array("boundary", boundary_BD, dtype),
        [_arrays(*layer, dtype) for layer in zip(stack.tables, stack.layers, strict=True)],
        [layer.eps for layer in stack.layers],
        result("result", out_ND, dtype), engine_threads(),
    )  # fmt: skip
    if not is_sound:
        raise DataError(f"{edges!r}: an edge or a start leads from one neighbourhood into another")
    return out_ND


def _arrays(tables: RelationTables, weights: LayerWeights, dtype: torch.dtype) -> list[AnyArray]:
    learned = [array(name, tensor, dtype) for name, tensor in zip(_NAMES, weights[:4], strict=True)]
    each = [tables] if isinstance(tables, Tensor) else tables
    return learned + [array("relation tables", table, dtype) for table in each]


_NAMES = ("weight", "bias", "norm weight", "norm bias")
