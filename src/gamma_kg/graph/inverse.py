"""Inverse ids: the one place that knows how a relation read from tail to head is numbered.

Of R relations, r = 0..R-1 are those that the user named, and r + R is the same relation read from its other end: it
leads from tails to heads, so the query (e, r + R) asks for the heads of r. Everything here takes plain integers,
numpy arrays and tensors alike.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ids = TypeVar("Ids", bound=Any)


def num_types(num_relations: int) -> int:
    """How many ids there are: every relation, read both ways."""
    return 2 * num_relations


def inverse_of(relation: Ids, num_relations: int) -> Ids:
    """The ids of the same relations read from their other ends."""
    inverse: Ids = (relation + num_relations) % max(num_types(num_relations), 1)
    return inverse


def direct_of(relation: Ids, num_relations: int) -> Ids:
    """The ids as the user numbered them, whichever way the relations are read."""
    direct: Ids = relation % max(num_relations, 1)
    return direct


def is_inverse(relation: Ids, num_relations: int) -> Any:
    """Whether the relations are read from tail to head."""
    return relation >= num_relations


def inverse_types(num_relations: int) -> NDArray[np.int64]:
    """The inverse of every id, [2R]."""
    return inverse_of(np.arange(num_types(num_relations)), num_relations)


def both_ways(
    triples: NDArray[np.integer[Any]], num_relations: int
) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
    """Every fact (h, r, t) read from both ends: (from, relation id, to), first all direct, then all inverse."""
    head, relation, tail = triples.reshape(-1, 3).T
    return (
        np.concatenate((head, tail)),
        np.concatenate((relation, inverse_of(relation, num_relations))),
        np.concatenate((tail, head)),
    )


def fact_of(source: int, relation: int, answer: int, num_relations: int) -> tuple[int, int, int]:
    """The fact (head, relation, tail) that an answer to the query (source, relation id) states."""
    if is_inverse(relation, num_relations):
        return answer, direct_of(relation, num_relations), source
    return source, relation, answer
