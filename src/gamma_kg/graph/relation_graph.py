"""The graph of relations: which ends of two relations meet in an entity (docs/model.md §2).

Nodes are the edge types of the entity graph (relations and inverses). Types of edges between them, in this order:
head-to-head, tail-to-tail, head-to-tail, tail-to-head. A relation meets itself, and edges carry no weights. All four
come from one table (`relation_meetings.py`): a tail of a relation is a head of its inverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.relation_meetings import find_meetings

EDGE_TYPES = ("h2h", "t2t", "h2t", "t2h")
# i-h2t-j says that a head of i is a tail of j, which read from j is j-t2h-i; the other two are symmetric.
INVERSE_TYPES = (0, 1, 3, 2)
BAND_EDGES = 1 << 22

IntArray = NDArray[np.int64]
# For relations in order: how many edges each has of each type, [I, types], and their other ends, sorted.
Part = tuple[IntArray, NDArray[np.int32]]


def build_relation_graph(edges: Edges) -> Edges:
    """The relation graph of an entity graph."""
    return edges_of_parts(relation_graph_parts(edges), edges.num_types, INVERSE_TYPES)


def edges_of_parts(parts: Iterator[Part], num_relations: int, inverse_types: Sequence[int]) -> Edges:
    """Edges from what is told of bands of relations."""
    counts, neighbours = [np.empty((0, len(inverse_types)), dtype=np.int64)], [np.empty(0, dtype=np.int32)]
    for count, neighbour in parts:
        counts.append(count)
        neighbours.append(neighbour)
    count_RT = np.concatenate(counts)
    is_group = count_RT > 0
    return Edges(
        num_nodes=num_relations,
        num_types=len(inverse_types),
        node_ptr=torch.from_numpy(np.append(0, is_group.sum(axis=1).cumsum()).astype(np.int64)),
        group_type=torch.from_numpy(np.nonzero(is_group)[1].astype(np.int32)),
        group_ptr=torch.from_numpy(np.append(0, count_RT[is_group].cumsum()).astype(np.int64)),
        neighbour=torch.from_numpy(np.concatenate(neighbours)),
        inverse=torch.tensor(inverse_types, dtype=torch.int32),
    )


def relation_graph_parts(edges: Edges, *, band_edges: int | None = None) -> Iterator[Part]:
    """The graph of meetings in bands of relations, in order."""
    num, inverse = edges.num_types, edges.inverse.numpy().astype(np.int64)
    meets = find_meetings(edges)
    most = BAND_EDGES if band_edges is None else band_edges
    count_R = np.diff(meets.indptr).astype(np.int64)
    end_R = (2 * (count_R + count_R[inverse])).cumsum()
    first = 0
    while first < num:
        before = int(end_R[first - 1]) if first else 0
        last = min(max(int(np.searchsorted(end_R, before + most, side="right")), first + 1), num)
        direct, back = meets[first:last], meets[inverse[first:last]]
        # In the order of EDGE_TYPES; columns by `inverse`, because a tail of j is a head of its inverse.
        columns: tuple[NDArray[np.integer], ...] = (
            direct.indices,
            inverse[back.indices],
            inverse[direct.indices],
            back.indices,
        )
        pointers = (direct.indptr, back.indptr, direct.indptr, back.indptr)
        count_I4 = np.stack([np.diff(pointer) for pointer in pointers], axis=1).astype(np.int64)
        rows = [_ascending(column, count) for column, count in zip(columns, count_I4.T, strict=True)]
        yield count_I4, by_relation(rows, count_I4)
        first = last


def by_relation(rows: Sequence[NDArray[np.int32]], count_IT: IntArray) -> NDArray[np.int32]:
    """Neighbours that come type by type, in the order relation, type, neighbour."""
    out = np.empty(int(count_IT.sum()), dtype=np.int32)
    start_IT = (np.cumsum(count_IT.ravel()) - count_IT.ravel()).reshape(count_IT.shape)
    for number, neighbour in enumerate(rows):
        count_I = count_IT[:, number]
        before_I = np.cumsum(count_I) - count_I
        out[np.repeat(start_IT[:, number] - before_I, count_I) + np.arange(len(neighbour))] = neighbour
    return out


def _ascending(column: NDArray[np.integer], count_I: IntArray) -> NDArray[np.int32]:
    """The columns of each row in order."""
    row = np.repeat(np.arange(len(count_I)), count_I)
    span = int(column.max(initial=0)) + 1
    key = row * span + column
    key.sort()
    ascending: NDArray[np.int32] = (key - row * span).astype(np.int32)
    return ascending
