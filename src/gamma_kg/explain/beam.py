"""The best walks from source to answer, one edge a layer at most, by a beam search over layers.

A walk may rest at a node during a layer. Its weight is the mean gradient of the edges it uses, each in its layer.
Walks are kept per node and per length, so that long ones do not crowd out short ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_EDGES = 50_000  # per layer, those with the largest gradients


class Walk(NamedTuple):
    """Positions of the edges used, in order from the source, and their mean gradient."""

    edges: tuple[int, ...]
    weight: float


class _Ends(NamedTuple):
    """Where walks stand after a layer: node, length, sum of gradients, and the walk and edge they came by."""

    node: IntArray
    length: IntArray
    total: FloatArray
    parent: IntArray
    edge: IntArray


def best_walks(
    receiver: IntArray, sender: IntArray, gradient_TE: FloatArray, source: int, answer: int, *, beam: int, count: int
) -> list[Walk]:
    """Up to `count` walks from source to answer without repeated nodes, heaviest first."""
    layers = [_Ends(*(np.array([v]) for v in (source, 0, 0.0, -1, -1)))]
    for gradient_E in gradient_TE:
        layers.append(_extended(layers[-1], receiver, sender, gradient_E, beam))
    last = layers[-1]
    arrived = np.flatnonzero((last.node == answer) & (last.length > 0))
    arrived = arrived[np.argsort(-last.total[arrived] / last.length[arrived], kind="stable")]
    walks: dict[tuple[int, ...], Walk] = {}
    for end in arrived.tolist():
        edges = _trace(layers, end)
        nodes = [source, *receiver[list(edges)].tolist()]
        if len(set(nodes)) == len(nodes) and edges not in walks:
            walks[edges] = Walk(edges, float(last.total[end] / last.length[end]))
        if len(walks) == count:
            break
    return list(walks.values())


def _extended(ends: _Ends, receiver: IntArray, sender: IntArray, gradient_E: FloatArray, beam: int) -> _Ends:
    """All walks after one more layer: those that rest, and those that take one of the heavier edges."""
    useful = np.flatnonzero((gradient_E > 0) & np.isin(sender, ends.node))
    if len(useful) > MAX_EDGES:
        useful = useful[np.argpartition(-gradient_E[useful], MAX_EDGES)[:MAX_EDGES]]
    # Each walk with each useful edge that leaves its node.
    by_node = np.argsort(ends.node, kind="stable")
    low = np.searchsorted(ends.node, sender[useful], "left", sorter=by_node)
    size = np.searchsorted(ends.node, sender[useful], "right", sorter=by_node) - low
    edge = np.repeat(useful, size)
    first = np.repeat(low - (np.cumsum(size) - size), size)
    parent = by_node[first + np.arange(len(edge))]
    everyone = np.arange(len(ends.node))
    node = np.concatenate([ends.node, receiver[edge]])
    length = np.concatenate([ends.length, ends.length[parent] + 1])
    total = np.concatenate([ends.total, ends.total[parent] + gradient_E[edge]])
    parent = np.concatenate([everyone, parent])
    edge = np.concatenate([np.full(len(everyone), -1), edge])
    order = np.lexsort((-total, length, node))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(node[order]) != 0) | (np.diff(length[order]) != 0)
    start = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    kept = order[np.arange(len(order)) - start < beam]
    return _Ends(node[kept], length[kept], total[kept], parent[kept], edge[kept])


def _trace(layers: list[_Ends], end: int) -> tuple[int, ...]:
    edges: list[int] = []
    for ends in reversed(layers[1:]):
        if ends.edge[end] >= 0:
            edges.append(int(ends.edge[end]))
        end = int(ends.parent[end])
    return tuple(reversed(edges))
