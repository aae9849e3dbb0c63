"""What a node makes of the messages that reach it, beside their sum (docs/model.md §3): mean and PNA, in plain torch.

The boundary counts as one more message. PNA (Corso et al. 2020) puts mean, largest, smallest and deviation side by
side, each as it is, and scaled up and down by how many messages there are against the average node.

B queries, N nodes, E edges, D channels.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.kernels.algebra import ALGEBRAS

# Width of the aggregate in units of D.
AGGREGATIONS = {"sum": 1, "mean": 1, "pna": 12}
# Messages held at once, in floats; a node is never divided.
CHUNK_FLOATS = 1 << 22
LEAST_VARIANCE, LEAST_SCALE = 1e-6, 1e-2


def message_count(edges: EdgeGroups) -> Tensor:
    """Messages that reach each node, the boundary counted, float64 [N]."""
    return edges.group_ptr[edges.node_ptr].diff().double() + 1


def mean_of_sum(edges: EdgeGroups, sum_BND: Tensor) -> Tensor:
    """The mean message, boundary counted, from the sum with the boundary."""
    return sum_BND / message_count(edges).to(sum_BND.dtype)[:, None]


def pna(edges: EdgeGroups, x_BND: Tensor, relation_BRW: Tensor, boundary_BND: Tensor, algebra: str) -> Tensor:
    """Mean, largest, smallest and deviation, each times three scales, (B, N, 12D); a few nodes at a time."""
    count_N = message_count(edges)
    log_N = count_N.log()
    scale_N = log_N / log_N.mean().clamp(min=1e-12)
    scale_N3 = torch.stack((torch.ones_like(scale_N), scale_N, 1 / scale_N.clamp(min=LEAST_SCALE)), dim=-1)
    edge_ptr = edges.group_ptr[edges.node_ptr].tolist()
    limit = max(1, CHUNK_FLOATS // max(1, x_BND.shape[0] * x_BND.shape[2]))
    parts, first = [], 0
    while first < edges.num_nodes:
        last = first + 1
        while last < edges.num_nodes and edge_ptr[last + 1] - edge_ptr[first] <= limit:
            last += 1
        node_E, type_E, neighbour_E = edges.slice(edge_ptr[first], edge_ptr[last])
        arguments = (x_BND, relation_BRW, boundary_BND[:, first:last], node_E - first, type_E, neighbour_E, algebra)
        parts.append(checkpoint(_statistics, *arguments, use_reentrant=False))
        first = last
    if not parts:
        return x_BND.new_zeros(*x_BND.shape[:2], 12 * x_BND.shape[2])
    feature_BN4D = torch.cat(parts, dim=1)
    return (feature_BN4D[..., None] * scale_N3.to(x_BND.dtype)[:, None, None]).flatten(2)


def _statistics(
    x_BND: Tensor,
    relation_BRW: Tensor,
    boundary_BnD: Tensor,
    node_E: Tensor,
    type_E: Tensor,
    neighbour_E: Tensor,
    algebra: str,
) -> Tensor:
    """Mean, largest, smallest, deviation of the messages at some nodes, the boundary being one: (B, n, 4, D)."""
    message_BED = ALGEBRAS[algebra].message(x_BND[:, neighbour_E], relation_BRW[:, type_E])
    count_n1 = torch.bincount(node_E, minlength=boundary_BnD.shape[1]).to(x_BND.dtype)[:, None] + 1
    mean = boundary_BnD.index_add(1, node_E, message_BED) / count_n1
    square = (boundary_BnD**2).index_add(1, node_E, message_BED**2) / count_n1
    place_BED = node_E[None, :, None].expand_as(message_BED)
    largest = boundary_BnD.scatter_reduce(1, place_BED, message_BED, "amax")
    smallest = boundary_BnD.scatter_reduce(1, place_BED, message_BED, "amin")
    deviation = (square - mean**2).clamp(min=LEAST_VARIANCE).sqrt()
    return torch.stack((mean, largest, smallest, deviation), dim=2)
