"""Classes that have nothing in common though chance would give them much: animals and buildings.

Few vocabularies declare which classes are disjoint. Where two large classes share no member, a candidate under both is
wrong, as a thing in two roles that exclude each other is (`rules/slots.py`, the same bounds). N entities, K classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gamma_kg.rules.bounds import MAX_SLIPS, at_most
from gamma_kg.rules.closure import Closures

# The largest classes are looked at: small ones that share nothing prove nothing.
MOST_CLASSES = 128
MOST_LEVELS = 64
# Two classes are apart if what they may share is so small a part of what chance would give them.
MAX_LIFT = 0.05

Shared = tuple[int, int]  # members of both, members of the smaller one


def classes_apart(closures: Closures, down: tuple[int, ...]) -> dict[tuple[int, int], Shared]:
    """Pairs of classes, each pair both ways round; `down` are relation ids from a class to what is under it."""
    pairs = [closures.pairs(relation) for relation in down]
    above = np.concatenate([parent for parent, _ in pairs]) if pairs else np.empty(0, dtype=np.int64)
    below = np.concatenate([child for _, child in pairs]) if pairs else above
    total = len(np.unique(np.concatenate([above, below])))
    if not total:
        return {}
    classes = _largest(above, below, closures.num_entities)
    members = [np.flatnonzero(closures.reach(int(one), *down)) for one in classes]
    start = np.cumsum([0, *map(len, members)])
    is_in = sparse.csr_array(
        (np.ones(start[-1]), np.concatenate(members), start), shape=(len(classes), closures.num_entities)
    )
    both_KK = (is_in @ is_in.T).toarray()
    size_K = both_KK.diagonal()
    small_KK, large_KK = np.minimum.outer(size_K, size_K), np.maximum.outer(size_K, size_K)
    are_apart = (both_KK <= MAX_SLIPS * small_KK) & (at_most(both_KK, small_KK) <= MAX_LIFT * large_KK / total)
    return {
        (int(classes[a]), int(classes[b])): (int(both_KK[a, b]), int(small_KK[a, b])) for a, b in np.argwhere(are_apart)
    }


def _largest(above: NDArray[np.int64], below: NDArray[np.int64], num_entities: int) -> NDArray[np.int64]:
    """The classes with most under them, counted by ways down, which is enough to choose by."""
    shape = (num_entities, num_entities)
    children = sparse.csr_array((np.ones(len(above)), (above, below)), shape=shape)
    ways = np.ones(num_entities)
    for _ in range(MOST_LEVELS):
        more = np.minimum(1 + np.asarray(children @ ways), num_entities)
        if np.array_equal(more, ways):
            break
        ways = more
    order = np.argsort(-ways, kind="stable")[:MOST_CLASSES]
    return order[ways[order] > 1]
