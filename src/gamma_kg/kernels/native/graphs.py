"""Graphs as the native code sees them: views of edge arrays that were looked through once, and renumbered copies."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.native.arrays import AnyArray, array, shown
from gamma_kg.kernels.native.loading import loaded
from gamma_kg.kernels.prepared import PreparedEdges


class EdgeArrays(NamedTuple):
    """The arrays of `EdgeGroups` in the order in which the operators take them."""

    node_ptr: Tensor
    group_type: Tensor
    group_ptr: Tensor
    neighbour: Tensor
    inverse: Tensor


_EDGE_DTYPES = (torch.int64, torch.int32, torch.int64, torch.int32, torch.int32)
_graphs: weakref.WeakKeyDictionary[EdgeGroups, Any] = weakref.WeakKeyDictionary()


def graph_of(edges: EdgeGroups) -> Any:
    """The native view of `edges`, looked through once for ids outside their range and kept as long as they live."""
    found = _graphs.get(edges)
    if found is None:
        found = graph_at(_arrays(edges))
        if not loaded().is_sound(found, edges.num_groups, edges.num_edges):
            raise DataError(
                f"{edges!r} is damaged: pointers or ids are out of range; make it again from its facts "
                "(`gamma index G.gamma --verify` names the array of a store)"
            )
        _graphs[edges] = found
    return found


def arrays(edges: EdgeGroups) -> EdgeArrays:
    """The arrays of `edges`, found sound."""
    if not torch.compiler.is_compiling():
        graph_of(edges)
    return _arrays(edges)


def _arrays(edges: EdgeGroups) -> EdgeArrays:
    return EdgeArrays(edges.node_ptr, edges.group_type, edges.group_ptr, edges.neighbour, edges.inverse)


def graph_at(edges: EdgeArrays) -> Any:
    """The native view of edge arrays; valid as long as they live."""
    for name, tensor, dtype in zip(EdgeArrays._fields, edges, _EDGE_DTYPES, strict=True):
        if tensor.dtype != dtype or tensor.dim() != 1 or not tensor.is_contiguous() or not tensor.is_cpu:
            raise DataError(
                f"edge array {name}: wanted one dimension of {dtype} on the CPU, dense; found {shown(tensor)}"
            )
    return loaded().Graph(*_numpy(edges))


def _numpy(edges: EdgeArrays) -> list[AnyArray]:
    return [array(*given) for given in zip(EdgeArrays._fields, edges, _EDGE_DTYPES, strict=True)]


def checked_ids(name: str, ids: Tensor, count: int, limit: int) -> AnyArray:
    """So many ids below the limit, as the native code takes them."""
    found = array(name, ids, torch.int64)
    if ids.shape != (count,) or not loaded().are_below(found, limit):
        raise ValueError(f"{name}: wanted {count} ids below {limit}, found {ids.tolist()[:8]} {ids.dtype}")
    return found


def checked_offsets(name: str, offset_B1: Tensor, total: int) -> AnyArray:
    """Numbers that divide `total` things, as the native code takes them."""
    if offset_B1.dtype != torch.int64 or not loaded().are_offsets(array(name, offset_B1, torch.int64), total):
        raise ValueError(f"{name}: wanted numbers that rise from 0 to {total}, found {offset_B1.tolist()[:8]}")
    return array(name, offset_B1, torch.int64)


def checked_starts(
    starts: Starts, count: int, num_nodes: int, dtype: torch.dtype
) -> tuple[AnyArray, AnyArray, AnyArray | None]:
    """Offsets, nodes and weights of the starts of so many queries, as the native code takes them."""
    node_S, offset_B1, weight_S = starts.node_S, starts.offset_B1, starts.weight_S
    if (
        len(starts) != count
        or node_S.dtype != torch.int64
        or offset_B1.dtype != torch.int64
        or not (weight_S is None or weight_S.shape == node_S.shape)
        or not loaded().are_starts(
            array("starts", node_S, torch.int64), array("starts", offset_B1, torch.int64), num_nodes
        )
    ):
        raise ValueError(
            f"starts: wanted those of {count} queries, each with ascending distinct ids below {num_nodes}, found "
            f"{starts!r}: {node_S.tolist()[:8]} {node_S.dtype}"
        )
    weights = None if weight_S is None else array("weights of the starts", weight_S.detach().to(dtype), dtype)
    return array("starts", offset_B1, torch.int64), array("starts", node_S, torch.int64), weights


def renumbered(edges: Edges) -> PreparedEdges:
    """The same graph under new numbers (src/csrc/graph.cpp: the order)."""
    old, place_N = arrays(edges), torch.empty(edges.num_nodes, dtype=torch.int32)
    new = EdgeArrays(*map(torch.empty_like, old))
    loaded().renumber(graph_at(old), place_N.numpy(), *_numpy(new)[:4])
    return PreparedEdges(edges.num_nodes, edges.num_types, *new[:4], edges.inverse, place_N.long())
