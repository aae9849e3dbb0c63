"""Neighbourhoods of many queries at once: the native routine where it is built, else the definition."""

from __future__ import annotations

import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.neighbourhoods import RESTART, Neighbourhoods, grow_plain
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import native
from gamma_kg.machine import meanwhile
from gamma_kg.machine.threads import engine_threads


def grow(edges: Edges, starts: Starts | Tensor, triples: int, restart: float = RESTART) -> Neighbourhoods:
    """The neighbourhood of each start, with at most `triples` facts. A tensor of nodes are single starts.

    The work is that of what is visited, whatever the size of the graph, whose arrays may lie on disk.
    """
    if triples < 1:
        raise DataError(f"a neighbourhood has at least one triple, got a budget of {triples}")
    if isinstance(starts, Tensor):
        starts = Starts.single(starts)
    node_S = starts.node_S.cpu().contiguous()
    weight_S = torch.ones(len(node_S), dtype=torch.double) if starts.weight_S is None else starts.weight_S.detach()
    weight_S = weight_S.cpu().double().contiguous()
    if len(node_S) and not (0 <= int(node_S.min()) and int(node_S.max()) < edges.num_nodes):
        raise DataError(f"starts must lie in 0..{edges.num_nodes - 1}")
    offset_B1 = starts.offset_B1.cpu().contiguous()
    module = native.module()
    if module is None:
        return grow_plain(edges, node_S, weight_S, offset_B1, triples, restart)
    arrays = (edges.node_ptr, edges.group_type, edges.group_ptr, edges.neighbour, edges.inverse)
    try:
        starting = (node_S, weight_S, offset_B1)
        meanwhile.run()
        grown = module.grow(*(array.numpy() for array in (*arrays, *starting)), triples, restart, engine_threads())
    except module.DamagedGraph as error:
        raise DataError(f"{edges!r} is damaged: {error}; make it again from its facts") from None
    offset, entity, node_ptr, group_type, group_ptr, neighbour = (torch.from_numpy(array) for array in grown)
    inside = Edges(len(entity), edges.num_types, node_ptr, group_type, group_ptr, neighbour, edges.inverse)
    return Neighbourhoods(inside, offset, entity)
