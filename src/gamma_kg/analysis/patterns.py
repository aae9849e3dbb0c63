"""Relation patterns of a graph, as rules with support and confidence.

| pattern        | rule                                | support                        |
|----------------|-------------------------------------|--------------------------------|
| symmetric      | r(x, y) ⇒ r(y, x)                   | distinct pairs of r            |
| anti-symmetric | r(x, y) ⇒ not r(y, x)               | distinct pairs of r            |
| inverse        | s(x, y) ⇒ r(y, x), s ≠ r            | distinct pairs of s            |
| composition    | s(x, y) and u(y, z) ⇒ r(x, z)       | distinct pairs (x, z) on the left |

Confidence is the share of the support for which the right side holds. A relation shows a pattern when some rule
with it on the right side reaches both thresholds. Definitions: Sun et al. (RotatE, ICLR 2019), made countable as in
Ali et al. (TPAMI 2022).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

PATTERNS = ("symmetric", "anti-symmetric", "inverse", "composition")
# With these, 119 of the 123 cells of the paper's statistics table that can be checked with the files at hand come out
# exactly; `gamma patterns` prints both side by side. 0.95, the default in Ali et al., gives 94 of them.
MIN_SUPPORT = 1
MIN_CONFIDENCE = 0.97

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class RelationPatterns:
    """Which relations show which pattern: one boolean array [num_relations] per name in `PATTERNS`."""

    shows: dict[str, BoolArray]
    min_support: int
    min_confidence: float

    def counts(self) -> dict[str, int]:
        return {name: int(mask.sum()) for name, mask in self.shows.items()}

    def triples_of(self, triples: IntArray) -> dict[str, BoolArray]:
        """Per pattern, which of the triples belong to a relation that shows it; shape (len(triples),)."""
        return {name: mask[triples[:, 1]] for name, mask in self.shows.items()}


def find_patterns(
    triples: IntArray,
    num_entities: int,
    num_relations: int,
    *,
    min_support: int = MIN_SUPPORT,
    min_confidence: float = MIN_CONFIDENCE,
) -> RelationPatterns:
    """The patterns of all relations in these triples (repeated triples count once)."""
    pairs = _PairIndex(triples, num_entities, num_relations)
    left, right, both = pairs.shared_with_reverse()
    size_R = pairs.size_R
    large: BoolArray = np.asarray(size_R >= max(min_support, 1))
    is_same = left == right
    both_ways = np.zeros(num_relations)
    both_ways[left[is_same]] = both[is_same] / size_R[left[is_same]]
    # A relation is no inverse of itself.
    is_sure = ~is_same & large[left] & (both / np.maximum(size_R[left], 1) >= min_confidence)
    inverse = np.zeros(num_relations, dtype=bool)
    inverse[right[is_sure]] = True
    shows: dict[str, BoolArray] = {
        "symmetric": large & (both_ways >= min_confidence),
        "anti-symmetric": large & (1 - both_ways >= min_confidence),
        "inverse": inverse,
        "composition": _compositions(pairs, min_support, min_confidence),
    }
    return RelationPatterns(shows, min_support, min_confidence)


class _PairIndex:
    """Distinct triples, and for every distinct (x, z) the relations that link it, to be asked by bisection."""

    def __init__(self, triples: IntArray, num_entities: int, num_relations: int) -> None:
        self.num_entities, self.num_relations = num_entities, num_relations
        head, relation, tail = np.unique(triples, axis=0).T if len(triples) else np.empty((3, 0), dtype=np.int64)
        self.head, self.relation, self.tail = head, relation, tail
        self.size_R = np.bincount(relation, minlength=num_relations)
        key = head * num_entities + tail
        order = np.argsort(key, kind="stable")
        self.relations = relation[order]
        self.keys, start = np.unique(key[order], return_index=True)
        self.ptr = np.append(start, len(key))

    def linked_by(self, heads: IntArray, tails: IntArray) -> tuple[IntArray, IntArray]:
        """All (position in the input, relation) such that the relation links that pair."""
        wanted = heads * self.num_entities + tails
        found = np.searchsorted(self.keys, wanted)
        hit = np.flatnonzero(self.keys[np.minimum(found, len(self.keys) - 1)] == wanted)
        first, count = self.ptr[found[hit]], np.diff(self.ptr)[found[hit]]
        position = np.repeat(hit, count)
        within = np.arange(len(position)) - np.repeat(np.cumsum(count) - count, count)
        return position, self.relations[np.repeat(first, count) + within]

    def shared_with_reverse(self) -> tuple[IntArray, IntArray, IntArray]:
        """(s, r, number of pairs (x, y) of s with (y, x) in r), for those s and r that share some."""
        if not len(self.keys):
            return (np.empty(0, dtype=np.int64),) * 3
        position, right = self.linked_by(self.tail, self.head)
        return self.counted(self.relation[position], right)

    def counted(self, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Each pair of relations that occurs, and how often: as many rows as there are pairs, not relations²."""
        pair, count = np.unique(left * self.num_relations + right, return_counts=True)
        return pair // self.num_relations, pair % self.num_relations, count


def _compositions(pairs: _PairIndex, min_support: int, min_confidence: float) -> BoolArray:
    """Relations r with some s, u: s(x, y) and u(y, z) ⇒ r(x, z); one sparse product per s covers every u."""
    num_entities, num_relations = pairs.num_entities, pairs.num_relations
    shows = np.zeros(num_relations, dtype=bool)
    if not len(pairs.keys):
        return shows
    ones = np.ones(len(pairs.head), dtype=np.int32)
    # Row y, column (u, z): a second step u from y to z. Only pairs (u, z) that occur get a column: a sparse product
    # needs work space of that width.
    step_end, column = np.unique(pairs.relation * num_entities + pairs.tail, return_inverse=True)
    second = sparse.csr_array((ones, (pairs.head, column)), shape=(num_entities, len(step_end)))
    bounds = np.searchsorted(np.sort(pairs.relation), np.arange(num_relations + 1))
    by_relation = np.argsort(pairs.relation, kind="stable")
    for s in range(num_relations):
        mine = by_relation[bounds[s] : bounds[s + 1]]
        first = sparse.csr_array(
            (ones[: len(mine)], (pairs.head[mine], pairs.tail[mine])), shape=(num_entities, num_entities)
        )
        reached = (first @ second).tocoo()
        start, (step, end) = reached.row.astype(np.int64), divmod(step_end[reached.col], num_entities)
        support = np.bincount(step, minlength=num_relations)
        position, right = pairs.linked_by(start, end)
        step, right, holds = pairs.counted(step[position], right)
        is_sure = (holds >= min_confidence * support[step]) & (support[step] >= max(min_support, 1))
        shows[right[is_sure]] = True
    return shows
