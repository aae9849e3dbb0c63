"""What the facts of each relation show of it: symmetric or never so, acyclic, irreflexive, functional.

Every verdict is a count with a bound (`rules/bounds.py`): a relation of three facts that run one way proves nothing.

| verdict            | counted                                   | among                                  |
|--------------------|-------------------------------------------|----------------------------------------|
| symmetric, never   | facts whose reverse is a fact             | facts between two different things     |
| irreflexive        | facts of a thing with itself              | facts                                  |
| acyclic            | facts on a cycle of the relation          | facts that lead on: the tail is a head |
| functional         | heads with more than one tail             | heads                                  |
| inverse functional | tails with more than one head             | tails                                  |

R relations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gamma_kg.rules.bounds import at_least, never

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# "Never": the exceptions seen are slips (MAX_SLIPS), and the bound leaves no room for more.
MAX_REVERSED = 0.02
MAX_CYCLIC = 0.04
MAX_LEADING = 0.01
MAX_SEVERAL = 0.01
# A loop is its own reverse: where no fact holds both ways, loops are out as well; where some do, loops need more proof.
MAX_LOOPS = 0.04
MAX_LOOPS_OF_BOTH_WAYS = 0.01
MIN_SYMMETRIC = 0.8


@dataclass(frozen=True, eq=False)
class Patterns:
    """Counts per relation, int64 [R], and the verdicts drawn from them, bool [R]."""

    facts: IntArray
    proper: IntArray  # facts between two different things
    reversed: IntArray
    loops: IntArray
    leading: IntArray  # facts whose tail is also a head
    cyclic: IntArray
    heads: IntArray
    heads_several: IntArray
    tails: IntArray
    tails_several: IntArray

    @cached_property
    def is_symmetric(self) -> BoolArray:
        return at_least(self.reversed, self.proper) >= MIN_SYMMETRIC

    @cached_property
    def is_never_symmetric(self) -> BoolArray:
        return never(self.reversed, self.proper, MAX_REVERSED)

    @cached_property
    def is_irreflexive(self) -> BoolArray:
        one_way = never(self.loops, self.facts, MAX_LOOPS) & self.is_never_symmetric
        return one_way | never(self.loops, self.facts, MAX_LOOPS_OF_BOTH_WAYS)

    @cached_property
    def is_acyclic(self) -> BoolArray:
        return never(self.cyclic, self.leading, MAX_CYCLIC)

    @cached_property
    def never_leads_on(self) -> BoolArray:
        return never(self.leading, self.facts, MAX_LEADING)

    @cached_property
    def is_functional(self) -> BoolArray:
        return never(self.heads_several, self.heads, MAX_SEVERAL)

    @cached_property
    def is_inverse_functional(self) -> BoolArray:
        return never(self.tails_several, self.tails, MAX_SEVERAL)

    def describe(self, relation: int) -> list[str]:
        """What is known of a relation, in words, each with its count."""
        r, both_ways = relation, _of(self.reversed[relation], self.proper[relation])
        verdicts = (
            (self.is_symmetric, f"symmetric: {both_ways} facts also hold in reverse"),
            (
                self.is_never_symmetric,
                f"never symmetric: {both_ways} facts also hold in reverse",
            ),
            (self.is_acyclic, f"without cycles: {_of(self.cyclic[r], self.leading[r])} facts that lead on close one"),
            (self.is_irreflexive, f"irreflexive: {_of(self.loops[r], self.facts[r])} facts link a thing with itself"),
            (self.is_functional, f"one tail per head: {_of(self.heads_several[r], self.heads[r])} heads have several"),
            (
                self.is_inverse_functional,
                f"one head per tail: {_of(self.tails_several[r], self.tails[r])} tails have several",
            ),
        )
        return [text for holds, text in verdicts if holds[r]]


def find_patterns(triples: IntArray, num_entities: int, num_relations: int) -> Patterns:
    """Counts over distinct triples, by sorting and one search for cycles: seconds for a million facts."""
    head, relation, tail = np.asarray(triples, dtype=np.int64).reshape(-1, 3).T
    key = np.unique((relation * num_entities + head) * num_entities + tail)
    tail, key = key % max(num_entities, 1), key // max(num_entities, 1)
    relation, head = key // max(num_entities, 1), key % max(num_entities, 1)

    def per_relation(chosen: NDArray[np.bool_] | slice) -> IntArray:
        return np.bincount(relation[chosen], minlength=num_relations).astype(np.int64)

    # A node for every (relation, entity) that occurs: relations lie side by side as one graph.
    start, end = relation * num_entities + head, relation * num_entities + tail
    nodes, index = np.unique(np.concatenate([start, end]), return_inverse=True)
    start_node, end_node = index[: len(start)], index[len(start) :]
    size = max(len(nodes), 1)
    is_proper = head != tail
    key = start_node * size + end_node
    backward = end_node * size + start_node
    in_order = np.sort(key)
    found = np.searchsorted(in_order, backward)
    has_reverse = np.zeros(len(key), dtype=bool)
    if len(key):
        has_reverse = in_order[np.minimum(found, len(key) - 1)] == backward
    graph = sparse.csr_array((np.ones(len(key), dtype=np.int8), (start_node, end_node)), shape=(size, size))
    _, component = sparse.csgraph.connected_components(graph, directed=True, connection="strong")
    out_degree = np.bincount(start_node, minlength=size)
    in_degree = np.bincount(end_node, minlength=size)
    node_relation = nodes // max(num_entities, 1)

    def nodes_per_relation(chosen: NDArray[np.bool_]) -> IntArray:
        return np.bincount(node_relation[chosen[: len(nodes)]], minlength=num_relations).astype(np.int64)

    return Patterns(
        facts=per_relation(slice(None)),
        proper=per_relation(is_proper),
        reversed=per_relation(is_proper & has_reverse),
        loops=per_relation(~is_proper),
        leading=per_relation(is_proper & (out_degree[end_node] > 0)),
        cyclic=per_relation(is_proper & (component[start_node] == component[end_node])),
        heads=nodes_per_relation(out_degree > 0),
        heads_several=nodes_per_relation(out_degree > 1),
        tails=nodes_per_relation(in_degree > 0),
        tails_several=nodes_per_relation(in_degree > 1),
    )


def _of(count: int | np.int64, of: int | np.int64) -> str:
    return f"{int(count):,} of {int(of):,}"
