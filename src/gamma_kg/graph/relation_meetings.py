"""Which relations have a head in common: the one table that the graph of relations is made from.

A group (node, relation) of the entity graph says that the node is a head of the relation, and the tails of a relation
are the heads of its inverse. So meets[i, j], i and j have a head in common, tells everything. It is the pattern of one
sparse product, computed a band of rows at a time, each from blocks of nodes.

A graph with tens of thousands of relations may have a billion of meetings. Where there are more than MOST_MEETINGS,
every relation keeps those with the relations that it shares most heads with, and those that others keep with it
(docs/local.md has what that costs). So memory is bounded by the number of relations, and no longer by its square.

R relations and inverses.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges

# So many are kept whatever they say: 1,000 relations that all meet have fewer.
MOST_MEETINGS = 1 << 22
LEAST_KEPT = 16
# An entity with more relations than that says nothing of any of them, and the product grows with their square.
MOST_OF_NODE = 4_096
BLOCK_GROUPS = 1 << 22
BAND_CELLS = 1 << 23

IntArray = NDArray[np.int64]


def find_meetings(edges: Edges, *, most: int | None = None, band_cells: int | None = None) -> sp.csr_array:
    """The table of meetings, bool [R, R], symmetric, its columns ascending."""
    most = MOST_MEETINGS if most is None else most
    num = edges.num_types
    kept = max(LEAST_KEPT, most // max(2 * num, 1))
    heads_R, cells_R = _sizes(edges)
    bands = [_no_meetings(0, num)]
    count, is_thinned = 0, False
    for first, last in _bands(cells_R, BAND_CELLS if band_cells is None else band_cells):
        bands.append(_shared_heads(edges, first, last))
        count += bands[-1].nnz
        if count > most:
            # What came before was not thinned as long as all of it might stay.
            late = bands[-1:] if is_thinned else bands
            bands[-len(late) :] = [_strongest(band, kept) for band in late]
            is_thinned = True
    found = sp.csr_array(sp.vstack(bands, format="csr"))
    if is_thinned:
        itself = sp.diags_array((heads_R > 0).astype(np.float32))
        found = sp.csr_array(found + found.T + itself)
        found.eliminate_zeros()
    found.sort_indices()
    return sp.csr_array((np.ones(found.nnz, dtype=bool), found.indices, found.indptr), shape=(num, num))


def node_blocks(node_ptr: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of nodes with about BLOCK_GROUPS groups each."""
    first, num_nodes = 0, len(node_ptr) - 1
    while first < num_nodes:
        last = int(np.searchsorted(node_ptr, node_ptr[first] + BLOCK_GROUPS, side="right")) - 1
        last = min(max(last, first + 1), num_nodes)
        yield first, last
        first = last


def _sizes(edges: Edges) -> tuple[IntArray, IntArray]:
    """How many heads each relation has, and at most how many others it meets."""
    num = edges.num_types
    heads_R, others_R = np.zeros(num, dtype=np.int64), np.zeros(num)
    for heads in _heads_of_blocks(edges):
        heads_R += np.bincount(heads.indices, minlength=num)
        of_node = np.diff(heads.indptr)
        others_R += np.bincount(heads.indices, weights=np.repeat(of_node, of_node), minlength=num)
    return heads_R, np.minimum(others_R, num).astype(np.int64)


def _heads_of_blocks(edges: Edges) -> Iterator[sp.csr_array]:
    """For blocks of nodes: 1 where a node is a head of a relation, [nodes, R]."""
    node_ptr, group_type = edges.node_ptr.numpy(), edges.group_type.numpy()
    for first, last in node_blocks(node_ptr):
        type_, of_node = group_type[node_ptr[first] : node_ptr[last]], np.diff(node_ptr[first : last + 1])
        if of_node.max(initial=0) > MOST_OF_NODE:
            type_ = type_[np.repeat(of_node <= MOST_OF_NODE, of_node)]
            of_node = np.where(of_node <= MOST_OF_NODE, of_node, 0)
        ptr = np.append(0, of_node.cumsum())
        shape = (last - first, edges.num_types)
        yield sp.csr_array((np.ones(len(type_), dtype=np.float32), type_, ptr), shape=shape)


def _bands(cells_R: IntArray, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of relations whose rows have at most about `most` cells."""
    end_R = cells_R.cumsum()
    first = 0
    while first < len(cells_R):
        before = int(end_R[first - 1]) if first else 0
        last = max(int(np.searchsorted(end_R, before + most, side="right")), first + 1)
        yield first, last
        first = last


def _shared_heads(edges: Edges, first: int, last: int) -> sp.csr_array:
    """How many heads the relations first .. last share with each of all, [last - first, R]."""
    found = _no_meetings(last - first, edges.num_types)
    for heads in _heads_of_blocks(edges):
        place = np.flatnonzero((heads.indices >= first) & (heads.indices < last))
        if not len(place):
            continue
        node = np.searchsorted(heads.indptr, place, side="right") - 1
        ones = np.ones(len(place), dtype=np.float32)
        here = sp.csr_array((ones, (heads.indices[place] - first, node)), shape=(last - first, heads.shape[0]))
        shared = here @ heads
        found = sp.csr_array(found + shared) if found.nnz else shared
    return found


def _no_meetings(rows: int, columns: int) -> sp.csr_array:
    empty = np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int32), np.zeros(rows + 1, dtype=np.int32)
    return sp.csr_array(empty, shape=(rows, columns))


def _strongest(band: sp.csr_array, kept: int) -> sp.csr_array:
    """Of each row the `kept` largest cells; of equal ones the lower column."""
    # One number for each cell, none twice in a row.
    key = (np.int64(2**31) - band.data.astype(np.int64)) << 32 | band.indices
    stays = np.ones(len(key), dtype=bool)
    for row in np.flatnonzero(np.diff(band.indptr) > kept).tolist():
        cells = slice(band.indptr[row], band.indptr[row + 1])
        stays[cells] = key[cells] <= np.partition(key[cells], kept - 1)[kept - 1]
    pointers = np.append(0, np.cumsum(stays))[band.indptr]
    return sp.csr_array((band.data[stays], band.indices[stays], pointers), shape=band.shape)
