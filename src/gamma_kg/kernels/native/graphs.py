"""Graphs as the native code sees them: views of edge arrays that were looked through once, and renumbered copies."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.kernels.native.loading import loaded, shown
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
            raise DataError(f"{edges!r}: pointers or ids are out of range")
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
    for name, array, dtype in zip(EdgeArrays._fields, edges, _EDGE_DTYPES, strict=True):
        if array.dtype != dtype or array.dim() != 1 or not array.is_contiguous() or array.device.type != "cpu":
            raise DataError(
                f"edge array {name}: wanted one dimension of {dtype} on the CPU, dense; found {shown(array)}"
            )
    num_nodes, num_types = edges.node_ptr.numel() - 1, edges.inverse.numel()
    return loaded().Graph(num_nodes, num_types, [array.data_ptr() for array in edges])


def are_below(ids: Tensor, limit: int) -> bool:
    """Whether all of these int64 ids are in 0 .. limit - 1."""
    return bool(loaded().are_below(ids.data_ptr(), ids.numel(), limit))


def are_starts(node_S: Tensor, offset_B1: Tensor, num_nodes: int) -> bool:
    """Whether offsets go up to the number of starts, and the nodes of each query are ascending and inside the graph."""
    return bool(loaded().are_starts(node_S.data_ptr(), len(node_S), offset_B1.data_ptr(), len(offset_B1), num_nodes))


def renumbered(edges: Edges) -> PreparedEdges:
    """The same graph under new numbers (src/csrc/graph.cpp: the order)."""
    old, place_N = arrays(edges), torch.empty(edges.num_nodes, dtype=torch.int32)
    new = old._replace(**{name: torch.empty_like(array) for name, array in old._asdict().items() if name != "inverse"})
    loaded().renumber(graph_at(old), [place_N.data_ptr(), *(array.data_ptr() for array in new[:4])])
    return PreparedEdges(edges.num_nodes, edges.num_types, *new, place_N.long())
