"""Relations that hold for the same pairs of entities: further edges of the graph of relations.

Meetings (`relation_graph.py`) are the same for a symmetric relation and for a hierarchy. Pairs tell them apart: does a
relation go with its own inverse, does it imply another? Edges are typed by the share of their ordered pairs that two
relations have in common; one sparse product finds them all.

    same       i and j each hold for most pairs of the other
    implies    most pairs of i are pairs of j; "implied" is that read from j
    sometimes  they have pairs in common, but few
    never      a relation and its own inverse that have next to none
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.relation_graph import EDGE_TYPES, INVERSE_TYPES, build_relation_graph

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


def relation_graph_of_kind(edges: Edges, kind: str) -> Edges:
    """The relation graph that a model asks for by `GammaConfig.relation_graph`."""
    meetings = build_relation_graph(edges)
    return meetings if kind == "meetings" else with_pairs(meetings, edges)


def with_pairs(meetings: Edges, edges: Edges) -> Edges:
    """The graph of meetings and the edges of common pairs in one."""
    met = tuple(column.numpy() for column in meetings.slice(0, meetings.num_edges))
    node, type_, neighbour = (np.concatenate(column) for column in zip(met, common_pairs(edges), strict=True))
    return Edges.build(node, type_, neighbour, edges.num_types, np.asarray(KINDS["pairs"][1]))


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
    """How many ordered pairs every two relations have in common, (R, R), and how many each has, (R,)."""
    R, N, inverse = edges.num_types, edges.num_nodes, edges.inverse.numpy()
    per_group = edges.group_ptr.diff().numpy()
    node = np.repeat(edges.group_node.numpy(), per_group)
    neighbour = edges.neighbour.numpy().astype(np.int64)
    # Half of the pairs are enough, the others are the same read backwards. A fact about an entity and itself is its
    # own inverse and says nothing of the relation's direction: it is left out.
    half = node < neighbour
    relation = np.repeat(edges.group_type.numpy(), per_group)[half].astype(np.int64)
    fact = np.unique((node[half] * N + neighbour[half]) * R + relation)  # a repeated fact counts once
    pair, relation = fact // R, fact % R
    size_R = np.bincount(relation, minlength=R)
    # Pairs of a single relation have nothing in common with others: most of them, and left out of the product.
    begins = np.flatnonzero(np.diff(pair, prepend=-1))
    length = np.diff(np.append(begins, len(pair)))
    shared = np.repeat(length > 1, length)
    number = np.repeat(np.arange(len(begins)), length)[shared]
    ones = np.ones(len(number), dtype=np.int32)
    holds = sp.csr_array((ones, (relation[shared], number)), shape=(R, max(1, len(begins))))
    common = sp.csr_array(holds @ holds.T)
    return sp.coo_array(common + common[inverse][:, inverse]), size_R + size_R[inverse]
