"""Edge arrays as the native code sees them: views that were looked through once, and renumbered copies."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import EdgeGroups
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


def renumbered(edges: EdgeGroups) -> PreparedEdges:
    """The same graph under new numbers (src/csrc/graph.cpp: the order)."""
    old, place_N = arrays(edges), torch.empty(edges.num_nodes, dtype=torch.int32)
    new = EdgeArrays(*map(torch.empty_like, old))
    loaded().renumber(graph_at(old), place_N.numpy(), *_numpy(new)[:4])
    return PreparedEdges(edges.num_nodes, edges.num_types, *new[:4], edges.inverse, place_N.long())
