"""Sorting pairs of ids: as one integer each, which is several times faster, or where that is too small, by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.integer[Any]]
Int64Array = NDArray[np.int64]

# The largest count of different pairs that one integer can number.
MOST_PAIRS = 2**63 - 1


def sorted_pairs(
    first: IntArray, second: IntArray, num_first: int, num_second: int, *, most: int = MOST_PAIRS
) -> tuple[Int64Array, Int64Array]:
    """The pairs in order, every copy kept; firsts are below `num_first`, seconds below `num_second`."""
    if num_first * max(num_second, 1) > most:
        order = np.lexsort((second, first))
        return first[order].astype(np.int64), second[order].astype(np.int64)
    key = first.astype(np.int64) * num_second + second
    key.sort()
    return key // max(num_second, 1), key % max(num_second, 1)


def starts_of_runs(*sorted_columns: IntArray) -> Int64Array:
    """Where rows differ from the row before, in columns that are sorted together; the first row counts."""
    is_new = np.ones(len(sorted_columns[0]), dtype=bool)
    if len(is_new):
        is_new[1:] = False
        for column in sorted_columns:
            is_new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_new)


def first_of_each(
    first: IntArray, second: IntArray, num_first: int, num_second: int, *, most: int = MOST_PAIRS
) -> Int64Array:
    """Positions of the distinct pairs, where each comes first, ascending."""
    if num_first * max(num_second, 1) > most:
        order = np.lexsort((second, first))  # stable: of equal pairs the first comes first
        return np.sort(order[starts_of_runs(first[order], second[order])])
    key = first.astype(np.int64) * num_second + second
    in_order = np.sort(key)
    if not (in_order[1:] == in_order[:-1]).any():
        return np.arange(len(key))
    return np.sort(np.unique(key, return_index=True)[1])
