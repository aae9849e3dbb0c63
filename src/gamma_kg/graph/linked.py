"""Do the two ends of a fact stay near each other when the fact is gone?

A fact that was the only link between its ends can't be found by any path: whoever is asked for it can only guess what
is frequent. Facts missing from a graph are seldom of that kind, so training on one graph does not ask for such.

Another fact about the same two ends is a twin. Where most facts have one (an inverse that is stored, too), a fact is
easily found by its twin, and what is missing may have none: so both kinds of facts judge what was learnt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.edges import Edges

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Steps from one end to the other. In sparse benchmark graphs four fifths of the facts that are asked for have a path of
# at most so many (docs/training.md).
NEAR = 4
# A side that has met so many entities is not grown on: it nearly always meets the other.
CROWD = 20_000


def linked_without(edges: Edges, triples: IntArray, steps: int = NEAR, *, twins: bool = True) -> BoolArray:
    """Whether other facts link head and tail by a path of at most `steps`, for each of the triples, which are facts.

    Without `twins` another fact about the same two is no such path.
    """
    ptr, neighbour = _neighbours(edges)
    return np.array([_is_linked(ptr, neighbour, int(h), int(t), steps, twins) for h, _, t in triples], dtype=bool)


def are_beside(edges: Edges, one: IntArray, other: IntArray) -> BoolArray:
    """Whether a fact links each two entities."""
    ptr, neighbour = _neighbours(edges)
    ends = zip(one, other, strict=True)
    return np.array([(neighbour[ptr[start] : ptr[start + 1]] == end).any() for start, end in ends], dtype=bool)


def _neighbours(edges: Edges) -> tuple[IntArray, NDArray[np.int32]]:
    """The neighbours of all entities in one list, and where those of each begin."""
    return edges.group_ptr.numpy()[edges.node_ptr.numpy()], edges.neighbour.numpy()


def _is_linked(ptr: IntArray, neighbour: NDArray[np.int32], head: int, tail: int, steps: int, twins: bool) -> bool:
    beside = neighbour[ptr[head] : ptr[head + 1]]
    # A loop is in the list of its entity twice, once for each way of reading it.
    if twins and np.count_nonzero(beside == tail) > (2 if head == tail else 1):
        return True
    if head == tail:
        return False
    sides = [np.unique(beside[beside != tail])]
    other = neighbour[ptr[tail] : ptr[tail + 1]]
    sides.append(np.unique(other[other != head]))
    for length in range(2, steps + 1):
        if not (len(sides[0]) and len(sides[1])):
            return False
        if len(np.intersect1d(sides[0], sides[1], assume_unique=True)):
            return True
        smaller = int(len(sides[1]) < len(sides[0]))
        if length == steps:
            return False
        if len(sides[smaller]) > CROWD:
            return True
        # The ends themselves are no way around their own fact.
        grown = np.union1d(sides[smaller], _next_to(ptr, neighbour, sides[smaller]))
        sides[smaller] = grown[(grown != head) & (grown != tail)]
    return False


def _next_to(ptr: IntArray, neighbour: NDArray[np.int32], nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """All neighbours of the nodes."""
    first, count = ptr[nodes], ptr[nodes + 1] - ptr[nodes]
    start = np.repeat(first - (np.cumsum(count) - count), count)
    return np.unique(neighbour[start + np.arange(len(start))])
