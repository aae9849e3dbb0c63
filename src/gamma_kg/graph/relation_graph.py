"""The graph of relations: which ends of two relations meet in an entity (docs/model.md §2).

Nodes are the edge types of the entity graph (relations and inverses). Types of edges between them, in this order:
head-to-head, tail-to-tail, head-to-tail, tail-to-head. A relation meets itself, and edges carry no weights.

A group (node, relation) of the entity graph says just this: the node is a head of the relation. The tails of a
relation are the heads of its inverse. So one table tells everything, meets[i, j]: i and j have a head in common. It is
computed a band of rows at a time, each from blocks of nodes, and never held whole: memory does not grow with the
graph, and with the number of relations only as far as the edges themselves do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges

EDGE_TYPES = ("h2h", "t2t", "h2t", "t2h")
# i-h2t-j says that a head of i is a tail of j, which read from j is j-t2h-i; the other two are symmetric.
INVERSE_TYPES = (0, 1, 3, 2)
BAND_BYTES = 1 << 27
BLOCK_GROUPS = 1 << 22

IntArray = NDArray[np.int64]


def build_relation_graph(edges: Edges, *, band_bytes: int = BAND_BYTES) -> Edges:
    """The relation graph of an entity graph."""
    num = edges.num_types
    counts, neighbours = [np.empty((0, len(EDGE_TYPES)), dtype=np.int64)], [np.empty(0, dtype=np.int32)]
    for count_I4, neighbour in relation_graph_parts(edges, band_bytes=band_bytes):
        counts.append(count_I4)
        neighbours.append(neighbour)
    return edges_of_counts(np.concatenate(counts), torch.from_numpy(np.concatenate(neighbours)), num)


def edges_of_counts(count_R4: IntArray, neighbour: torch.Tensor, num_relations: int) -> Edges:
    """Edges from how many each relation has of each type, and their other ends in order."""
    is_group = count_R4 > 0
    return Edges(
        num_nodes=num_relations,
        num_types=len(EDGE_TYPES),
        node_ptr=torch.from_numpy(np.append(0, is_group.sum(axis=1).cumsum()).astype(np.int64)),
        group_type=torch.from_numpy(np.nonzero(is_group)[1].astype(np.int32)),
        group_ptr=torch.from_numpy(np.append(0, count_R4[is_group].cumsum()).astype(np.int64)),
        neighbour=neighbour,
        inverse=torch.tensor(INVERSE_TYPES, dtype=torch.int32),
    )


def relation_graph_parts(edges: Edges, *, band_bytes: int = BAND_BYTES) -> Iterator[tuple[IntArray, NDArray[np.int32]]]:
    """For bands of relations in order: how many edges each has of each type, [I, 4], and their other ends, sorted."""
    num, inverse = edges.num_types, edges.inverse.numpy().astype(np.int64)
    size = max(1, band_bytes // max(2 * num, 1))
    for start in range(0, num, size):
        band = np.arange(start, min(start + size, num))
        wanted = np.unique(np.concatenate((band, inverse[band])))
        found = meetings(edges, wanted)
        meets, meets_back = found[np.searchsorted(wanted, band)], found[np.searchsorted(wanted, inverse[band])]
        # In the order of EDGE_TYPES; columns by `inverse`, because a tail of j is a head of its inverse.
        tables = (meets, meets_back[:, inverse], meets[:, inverse], meets_back)
        count_I4 = np.stack([table.sum(axis=1) for table in tables], axis=1).astype(np.int64)
        rows = [table.nonzero()[1].astype(np.int32) for table in tables]
        yield count_I4, by_relation(rows, count_I4)


def meetings(edges: Edges, relations: IntArray) -> NDArray[np.bool_]:
    """Whether each of these different relations has a head in common with each of all, [len(relations), R]."""
    num = edges.num_types
    row_of = np.full(num, -1, dtype=np.int64)
    row_of[relations] = np.arange(len(relations))
    found = np.zeros((len(relations), num), dtype=bool)
    node_ptr, group_type = edges.node_ptr.numpy(), edges.group_type.numpy()
    for first, last in node_blocks(node_ptr):
        ptr = node_ptr[first : last + 1] - node_ptr[first]
        type_ = group_type[node_ptr[first] : node_ptr[last]]
        heads = sp.csr_array((np.ones(len(type_), dtype=np.float32), type_, ptr), shape=(last - first, num))
        wanted = row_of[type_]
        node = np.repeat(np.arange(last - first), np.diff(ptr))
        here = sp.csr_array(
            (np.ones(int((wanted >= 0).sum()), dtype=np.float32), (wanted[wanted >= 0], node[wanted >= 0])),
            shape=(len(relations), last - first),
        )
        found[(here @ heads).nonzero()] = True
    return found


def node_blocks(node_ptr: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of nodes with about BLOCK_GROUPS groups each."""
    first, num_nodes = 0, len(node_ptr) - 1
    while first < num_nodes:
        last = int(np.searchsorted(node_ptr, node_ptr[first] + BLOCK_GROUPS, side="right")) - 1
        last = min(max(last, first + 1), num_nodes)
        yield first, last
        first = last


def by_relation(rows: Sequence[NDArray[np.int32]], count_I4: IntArray) -> NDArray[np.int32]:
    """Neighbours that come type by type, in the order relation, type, neighbour."""
    out = np.empty(int(count_I4.sum()), dtype=np.int32)
    start_I4 = (np.cumsum(count_I4.ravel()) - count_I4.ravel()).reshape(count_I4.shape)
    for number, neighbour in enumerate(rows):
        count_I = count_I4[:, number]
        before_I = np.cumsum(count_I) - count_I
        out[np.repeat(start_I4[:, number] - before_I, count_I) + np.arange(len(neighbour))] = neighbour
    return out
