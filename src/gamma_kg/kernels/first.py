"""The first layer with gradients, in work proportional to the source's degree.

Before it the states are zero but for the boundary at the source. A bilinear message of zero is zero, so only the source
and its neighbours get anything; all other nodes come out as one constant row. Plain torch, any device.

B queries, N nodes, M edges that touch a source, P pairs (query, node) that get something, D channels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.fused import LayerWeights


def first_layer(
    edges: Edges, relation_BRD: Tensor, source_B: Tensor, boundary_BD: Tensor, weights: LayerWeights, algebra: str
) -> Tensor:
    """New states, (B, N, D), as the whole layer gives them for the initial states."""
    assert ALGEBRAS[algebra].bilinear
    (B, D), N = boundary_BD.shape, edges.num_nodes
    query_M, type_M, node_M = _edges_at(edges, source_B)
    table_M = query_M if len(relation_BRD) > 1 else torch.zeros_like(query_M)
    message_MD = ALGEBRAS[algebra].message(boundary_BD[query_M], relation_BRD[table_M, type_M])

    source_key_B = torch.arange(B, device=source_B.device) * N + source_B
    key_P, position = torch.cat((source_key_B, query_M * N + node_M)).unique(return_inverse=True)
    x_PD = boundary_BD.new_zeros(len(key_P), D).index_put((position[:B],), boundary_BD)
    agg_PD = boundary_BD.new_zeros(len(key_P), D).index_add(0, position, torch.cat((boundary_BD, message_MD)))
    hidden_PD = F.linear(torch.cat((x_PD, agg_PD), dim=1), weights.weight, weights.bias)
    hidden_PD = torch.cat((hidden_PD, weights.bias[None]))  # the last row stands for all untouched nodes
    update_PD = F.relu(F.layer_norm(hidden_PD, (D,), weights.norm_weight, weights.norm_bias, weights.eps))
    everywhere = update_PD[-1].expand(B * N, D)
    return everywhere.index_put((key_P,), x_PD + update_PD[:-1]).view(B, N, D)


def _edges_at(edges: Edges, source_B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(query, type, node) of the edges (node, type, source): read from the source's own end, so by their inverses."""
    first_B = edges.group_ptr[edges.node_ptr[source_B]]
    count_B = edges.group_ptr[edges.node_ptr[source_B + 1]] - first_B
    query_M = torch.repeat_interleave(torch.arange(len(source_B), device=source_B.device), count_B)
    start_B = count_B.cumsum(0) - count_B
    position_M = torch.arange(len(query_M), device=source_B.device) + (first_B - start_B)[query_M]
    group_M = torch.searchsorted(edges.group_ptr, position_M, right=True) - 1
    type_M = edges.inverse[edges.group_type[group_M].long()].long()
    return query_M, type_M, edges.neighbour[position_M].long()
