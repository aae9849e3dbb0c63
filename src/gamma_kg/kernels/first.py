"""The first layer with gradients, in work proportional to the degrees of the starts.

Before it the states are zero but for the boundary at the starts. A bilinear message of zero is zero, so only the starts
and their neighbours get anything; all other nodes come out as one constant row. Plain torch, any device.

B queries, N nodes, S starts, M edges that touch one, P pairs (query, node) that get something, D channels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.parameters import LayerWeights


def first_layer(
    edges: EdgeGroups, relation_BRD: Tensor, starts: Starts, boundary_BD: Tensor, weights: LayerWeights
) -> Tensor:
    """New states, (B, N, D), as the whole layer gives them for the initial states."""
    algebra = ALGEBRAS[weights.algebra]
    assert algebra.bilinear and weights.aggregation == "sum"
    (B, D), N = boundary_BD.shape, edges.num_nodes
    row_SD, S = starts.rows(boundary_BD), len(starts.node_S)
    start_M, type_M, node_M = _edges_at(edges, starts.node_S)
    query_M = starts.query_S[start_M]
    table_M = query_M if len(relation_BRD) > 1 else torch.zeros_like(query_M)
    message_MD = algebra.message(row_SD[start_M], relation_BRD[table_M, type_M])

    key_P, position = torch.cat((starts.query_S * N + starts.node_S, query_M * N + node_M)).unique(return_inverse=True)
    x_PD = boundary_BD.new_zeros(len(key_P), D).index_put((position[:S],), row_SD)
    agg_PD = boundary_BD.new_zeros(len(key_P), D).index_add(0, position, torch.cat((row_SD, message_MD)))
    hidden_PD = F.linear(torch.cat((x_PD, agg_PD), dim=1), weights.weight, weights.bias)
    hidden_PD = torch.cat((hidden_PD, weights.bias[None]))  # the last row stands for all untouched nodes
    update_PD = F.relu(F.layer_norm(hidden_PD, (D,), weights.norm_weight, weights.norm_bias, weights.eps))
    everywhere = update_PD[-1].expand(B * N, D)
    return everywhere.index_put((key_P,), x_PD + update_PD[:-1]).view(B, N, D)


def _edges_at(edges: EdgeGroups, node_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(start, type, node) of the edges (node, type, start): read from the start's own end, so by their inverses."""
    first_S = edges.group_ptr[edges.node_ptr[node_S]]
    count_S = edges.group_ptr[edges.node_ptr[node_S + 1]] - first_S
    start_M = torch.repeat_interleave(torch.arange(len(node_S), device=node_S.device), count_S)
    before_S = count_S.cumsum(0) - count_S
    position_M = torch.arange(len(start_M), device=node_S.device) + (first_S - before_S)[start_M]
    group_M = torch.searchsorted(edges.group_ptr, position_M, right=True) - 1
    type_M = edges.inverse[edges.group_type[group_M].long()].long()
    return start_M, type_M, edges.neighbour[position_M].long()
