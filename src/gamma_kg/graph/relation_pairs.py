"""Relations that hold for the same pairs of entities: further edges of the graph of relations.

Meetings (`relation_graph.py`) are the same for a symmetric relation and for a hierarchy. Pairs tell them apart: does a
relation go with its own inverse, does it imply another? Edges are typed by the share of their ordered pairs that two
relations have in common; one sparse product per block of nodes finds them all.

    same       i and j each hold for most pairs of the other
    implies    most pairs of i are pairs of j; "implied" is that read from j
    sometimes  they have pairs in common, but few
    never      a relation and its own inverse that have next to none
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.ordering import sorted_pairs, starts_of_runs
from gamma_kg.graph.relation_graph import (
    EDGE_TYPES,
    INVERSE_TYPES,
    Part,
    build_relation_graph,
    by_relation,
    edges_of_parts,
    relation_graph_parts,
)
from gamma_kg.graph.relation_meetings import node_blocks

PAIR_TYPES = ("same", "implies", "implied", "sometimes", "never")
# For each kind of relation graph its edge types, and the type that an edge has when read from its other end.
KINDS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "meetings": (EDGE_TYPES, INVERSE_TYPES),
    "pairs": (EDGE_TYPES + PAIR_TYPES, (*INVERSE_TYPES, 4, 6, 5, 7, 8)),
}
# From this share of its pairs on a relation counts as going with another.
MIN_SHARE = 0.3
# A relation whose pairs turn up reversed less often than this never goes with its own inverse: errors are no pattern.
NEVER_SHARE = 0.02
# One common pair may be chance; and a relation must have a few before "never" says anything.
MIN_COMMON, MIN_PAIRS = 2, 3

IntArray = NDArray[np.integer]
TypedEdges = tuple[IntArray, IntArray, IntArray]


def relation_graphs_in_parts(edges: Edges) -> Iterator[tuple[Part, Part]]:
    """The graph of meetings, and the same with the edges of common pairs, in bands of relations."""
    num_types = len(KINDS["pairs"][0])
    pair_node, pair_type, pair_neighbour = common_pairs(edges)
    order = np.lexsort((pair_neighbour, pair_type, pair_node))
    pair_node, pair_end = pair_node[order], pair_neighbour[order].astype(np.int32)
    pair_count = np.bincount(pair_node * num_types + pair_type[order], minlength=edges.num_types * num_types)
    pair_count = pair_count.reshape(-1, num_types)
    first = 0
    for count_I4, met in relation_graph_parts(edges):
        last = first + len(count_I4)
        # Per relation first its meetings, then its pairs: in the order of their types.
        low, high = np.searchsorted(pair_node, (first, last))
        count = pair_count[first:last].copy()
        sizes = np.stack((count_I4.sum(axis=1), count.sum(axis=1)), axis=1)
        count[:, : count_I4.shape[1]] += count_I4
        yield (count_I4, met), (count, by_relation((met, pair_end[low:high]), sizes))
        first = last


def relation_graph_of_kind(edges: Edges, kind: str) -> Edges:
    """The relation graph that a model asks for by `GammaConfig.relation_graph`."""
    return build_relation_graph(edges) if kind == "meetings" else relation_graph_with_pairs(edges)


def relation_graph_with_pairs(edges: Edges) -> Edges:
    """The graph of meetings and the edges of common pairs in one."""
    parts = (both for _, both in relation_graphs_in_parts(edges))
    return edges_of_parts(parts, edges.num_types, KINDS["pairs"][1])


def common_pairs(edges: Edges) -> TypedEdges:
    """Edges (i, type, j) between relations with common pairs, and between a relation and its inverse without any."""
    R, inverse = edges.num_types, edges.inverse.numpy().astype(np.int64)
    common, size_R = _count_common(edges)
    i, j, count = common.row.astype(np.int64), common.col.astype(np.int64), common.data
    reversed_R = np.zeros(R)
    own = inverse[i] == j
    reversed_R[i[own]] = count[own]
    never_R = (size_R >= MIN_PAIRS) & (reversed_R < NEVER_SHARE * size_R)
    kept = (i != j) & (count >= MIN_COMMON) & ~(own & never_R[i])
    i, j, count = i[kept], j[kept], count[kept]
    forward, backward = count >= MIN_SHARE * size_R[i], count >= MIN_SHARE * size_R[j]
    place = {name: len(EDGE_TYPES) + number for number, name in enumerate(PAIR_TYPES)}
    types = np.select(
        [forward & backward, forward, backward], [place["same"], place["implies"], place["implied"]], place["sometimes"]
    )
    never = np.flatnonzero(never_R)
    return (
        np.concatenate((i, never)),
        np.concatenate((types, np.full(len(never), place["never"]))),
        np.concatenate((j, inverse[never])),
    )


def _count_common(edges: Edges) -> tuple[sp.coo_array, IntArray]:
    """How many ordered pairs every two relations have in common, (R, R), and how many each has, (R,).

    A block of nodes at a time: a pair belongs to the block of its lesser entity, so that memory is that of a block.
    """
    R, inverse = edges.num_types, edges.inverse.numpy()
    common, size_R = sp.csr_array((R, R), dtype=np.int64), np.zeros(R, dtype=np.int64)
    for first, last in node_blocks(edges.node_ptr.numpy()):
        pair, relation = _pairs_of_block(edges, first, last)
        size_R += np.bincount(relation, minlength=R)
        # Pairs of a single relation have nothing in common with others: most of them, and left out of the product.
        begins = starts_of_runs(pair)
        length = np.diff(np.append(begins, len(pair)))
        shared = np.repeat(length > 1, length)
        number = np.repeat(np.arange(len(begins)), length)[shared]
        ones = np.ones(len(number), dtype=np.int64)
        holds = sp.csr_array((ones, (relation[shared], number)), shape=(R, max(1, len(begins))))
        common = common + holds @ holds.T
    return sp.coo_array(common + common[inverse][:, inverse]), size_R + size_R[inverse]


def _pairs_of_block(edges: Edges, first: int, last: int) -> tuple[IntArray, IntArray]:
    """The pairs (u, v), u < v, of the nodes first .. last with their relations, sorted, each once."""
    groups = slice(int(edges.node_ptr[first]), int(edges.node_ptr[last]))
    start, stop = int(edges.group_ptr[groups.start]), int(edges.group_ptr[groups.stop])
    node, type_, neighbour = (column.numpy() for column in edges.slice(start, stop))
    # Half of the pairs are enough, the others are the same read backwards. A fact about an entity and itself is its
    # own inverse and says nothing of the relation's direction: it is left out.
    half = node < neighbour
    pair = (node[half] - first) * edges.num_nodes + neighbour[half]
    pair, relation = sorted_pairs(pair, type_[half], (last - first) * edges.num_nodes, edges.num_types)
    once = starts_of_runs(pair, relation)  # a repeated fact counts once
    return pair[once], relation[once]
