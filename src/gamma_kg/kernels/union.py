"""Many small graphs side by side as one: taken apart again. The definition of what a backend does with such a union.

B queries, each with a graph of its own; N nodes of the union; the nodes of query b are offset[b] : offset[b + 1].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.parameters import ScoreWeights


def ranges(offset_B1: Tensor) -> Iterator[tuple[int, slice]]:
    """Each query and its nodes."""
    offset = offset_B1.tolist()
    for b, (first, last) in enumerate(pairwise(offset)):
        yield b, slice(first, last)


def part_of_union(edges: EdgeGroups, nodes: slice) -> EdgeGroups:
    """The graph of some nodes that no edge leaves, numbered from 0 on."""
    group, end = int(edges.node_ptr[nodes.start]), int(edges.node_ptr[nodes.stop])
    edge, last = int(edges.group_ptr[group]), int(edges.group_ptr[end])
    return EdgeGroups(
        nodes.stop - nodes.start,
        edges.num_types,
        edges.node_ptr[nodes.start : nodes.stop + 1] - group,
        edges.group_type[group:end],
        edges.group_ptr[group : end + 1] - edge,
        edges.neighbour[edge:last] - nodes.start,
        edges.inverse,
    )


def starts_in(starts: Starts, b: int, nodes: slice) -> Starts:
    """The starts of query b as numbers of its own graph."""
    own = starts[b : b + 1]
    return Starts(own.node_S - nodes.start, own.weight_S, own.offset_B1)


def states_in(z_KND: Sequence[Tensor], nodes: slice) -> list[Tensor]:
    """The states of some nodes of the union, K times (1, n, D)."""
    return [z_ND[None, nodes] for z_ND in z_KND]


def weights_of_query(weights: ScoreWeights, b: int) -> ScoreWeights:
    """The same score for one query alone."""
    attention = weights.attention
    if attention is None or len(attention.context_BA) == 1:
        return weights
    return weights._replace(attention=attention._replace(context_BA=attention.context_BA[b : b + 1]))
