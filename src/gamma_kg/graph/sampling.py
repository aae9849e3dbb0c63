"""Many small graphs out of a large one, and wrong answers for training. numpy only, no Python loop over rows.

    TrainingGraph   --sample_subgraph--> Subgraph: seeds, capped breadth-first growth, optional dropping, new ids
    known answers --strict_negatives--> entities that answer none of the queries

Everything random comes from the generator that is handed in, so a draw can be made again from its seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gamma_kg.graph.worlds import make_world

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TrainingGraph:
    """Triples (int64 [n, 3]) and, for growing, the neighbours of each entity whatever the relation (CSR)."""

    name: str
    triples: IntArray
    num_entities: int
    num_relations: int
    ptr: IntArray
    neighbour: IntArray

    @classmethod
    def build(cls, name: str, triples: IntArray, num_entities: int, num_relations: int) -> TrainingGraph:
        triples = np.unique(triples, axis=0)
        ends = np.concatenate((triples[:, [0, 2]], triples[:, [2, 0]]))
        ends = ends[np.argsort(ends[:, 0], kind="stable")]
        ptr = np.searchsorted(ends[:, 0], np.arange(num_entities + 1))
        return cls(name, triples, num_entities, num_relations, ptr, np.ascontiguousarray(ends[:, 1]))

    @property
    def num_triples(self) -> int:
        return len(self.triples)

    def sample(self, options: SubgraphOptions, rng: np.random.Generator) -> Subgraph:
        return sample_subgraph(self, options, rng)


@dataclass(frozen=True)
class RuleWorlds:
    """A training graph that is another one in each draw (`graph/worlds.py`)."""

    name: str = "worlds"
    num_triples: int = 0  # none is kept; weights in proportion to triples would never draw it

    def sample(self, options: SubgraphOptions, rng: np.random.Generator) -> Subgraph:
        low, high = min(100, options.entities[0]), min(2000, options.entities[1])
        triples = make_world(rng, (min(low, high), high))
        return _relabel(triples, _kept(triples, options, rng))


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A subgraph of a training graph with ids of its own. `hidden` are facts among its entities that were left out."""

    triples: IntArray
    hidden: IntArray
    num_entities: int
    num_relations: int
    entity: IntArray  # the training graph's id of each entity
    relation: IntArray  # the training graph's id of each relation


@dataclass(frozen=True)
class SubgraphOptions:
    """How a subgraph is drawn. Pairs are bounds; each draw takes a value between them."""

    entities: tuple[int, int] = (300, 2000)
    max_triples: int = 20_000
    seeds: tuple[int, int] = (1, 5)
    neighbours: tuple[int, int] = (5, 40)
    drop_chance: float = 0.5
    min_kept: float = 0.3
    relation_drop_chance: float = 0.0
    min_relations_kept: float = 0.5


def sample_subgraph(graph: TrainingGraph, options: SubgraphOptions, rng: np.random.Generator) -> Subgraph:
    """A connected subgraph of about a log-uniformly drawn size (connected per seed), thinned out in some draws."""
    low, high = (min(bound, graph.num_entities) for bound in options.entities)
    size = round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))
    num_seeds = int(rng.integers(options.seeds[0], options.seeds[1] + 1))
    cap = int(rng.integers(options.neighbours[0], options.neighbours[1] + 1))
    # Seeds are ends of triples, so every one has somewhere to grow.
    seeds = graph.triples[rng.integers(graph.num_triples, size=num_seeds), 0]
    return subgraph_of(graph, grow(graph, seeds, size, cap, rng), options, rng)


def subgraph_of(
    graph: TrainingGraph, is_member: BoolArray, options: SubgraphOptions, rng: np.random.Generator
) -> Subgraph:
    """The facts among some entities, thinned out in some draws."""
    inside = is_member[graph.triples[:, 0]] & is_member[graph.triples[:, 2]]
    triples = graph.triples[inside]
    return _relabel(triples, _kept(triples, options, rng))


def grow(graph: TrainingGraph, seeds: IntArray, size: int, cap: int, rng: np.random.Generator) -> BoolArray:
    """Breadth-first from the seeds over at most `cap` random neighbours a node, until `size` entities are in."""
    is_member = np.zeros(graph.num_entities, dtype=bool)
    frontier = np.unique(seeds)[:size]
    is_member[frontier] = True
    room = size - len(frontier)
    while room > 0:
        found = neighbours_of(graph, frontier, cap, rng)
        found = np.unique(found[~is_member[found]])
        if not len(found):
            outside = np.flatnonzero(~is_member & (np.diff(graph.ptr) > 0))
            if not len(outside):
                break
            # The component is used up: go on from elsewhere.
            found = rng.choice(outside, size=1)
        if len(found) > room:
            found = rng.choice(found, size=room, replace=False)
        is_member[found] = True
        room -= len(found)
        frontier = found
    return is_member


def neighbours_of(graph: TrainingGraph, nodes: IntArray, cap: int, rng: np.random.Generator) -> IntArray:
    """Neighbours of the nodes, all of a node with up to `cap`, else `cap` drawn at random (some may coincide)."""
    degree = graph.ptr[nodes + 1] - graph.ptr[nodes]
    taken = np.minimum(degree, cap)
    owner = np.repeat(np.arange(len(nodes)), taken)
    position = np.arange(len(owner)) - np.repeat(np.cumsum(taken) - taken, taken)
    drawn = (rng.random(len(owner)) * degree[owner]).astype(np.int64)
    position = np.where(degree[owner] > cap, drawn, position)
    return graph.neighbour[graph.ptr[nodes[owner]] + position]


def _kept(triples: IntArray, options: SubgraphOptions, rng: np.random.Generator) -> BoolArray:
    """Which triples of the subgraph stay in the graph."""
    keep = np.ones(len(triples), dtype=bool)
    if rng.random() < options.relation_drop_chance:
        present = np.unique(triples[:, 1])
        share = rng.uniform(options.min_relations_kept, 1)
        chosen = rng.choice(present, size=max(1, round(share * len(present))), replace=False)
        keep &= np.isin(triples[:, 1], chosen)
    if rng.random() < options.drop_chance:
        keep &= rng.random(len(triples)) < rng.uniform(options.min_kept, 1)
    count = int(keep.sum())
    if count > options.max_triples:
        keep[rng.choice(np.flatnonzero(keep), size=count - options.max_triples, replace=False)] = False
    if not keep.any():
        keep[rng.integers(len(triples))] = True
    return keep


def _relabel(triples: IntArray, keep: BoolArray) -> Subgraph:
    """New ids for the entities and relations of the kept triples; left-out facts among them become `hidden`."""
    entity, ends = np.unique(triples[keep][:, [0, 2]], return_inverse=True)
    relation, kinds = np.unique(triples[keep, 1], return_inverse=True)
    ends = ends.reshape(-1, 2)
    kept = np.column_stack((ends[:, 0], kinds, ends[:, 1]))
    left = triples[~keep]
    left = left[np.isin(left[:, 0], entity) & np.isin(left[:, 1], relation) & np.isin(left[:, 2], entity)]
    hidden = np.column_stack(
        (
            np.searchsorted(entity, left[:, 0]),
            np.searchsorted(relation, left[:, 1]),
            np.searchsorted(entity, left[:, 2]),
        )
    )
    return Subgraph(kept, hidden, len(entity), len(relation), entity, relation)


def strict_negatives(
    owner: IntArray, answer: IntArray, num_queries: int, num_entities: int, count: int, rng: np.random.Generator
) -> tuple[IntArray, BoolArray]:
    """`count` uniform entities per query that are none of its answers, (B, count), and whether there are any, (B,).

    `owner`, `answer` list all known answers as `KnownAnswers.of` gives them. The j-th entity that is no answer is
    j + (how many answers come before it): a bisection finds that number, so nothing is drawn twice.
    """
    known_B = np.bincount(owner, minlength=num_queries)
    start_B = np.cumsum(known_B) - known_B
    free_B = num_entities - known_B
    drawn = (rng.random((num_queries, count)) * np.maximum(free_B, 1)[:, None]).astype(np.int64)
    # The i-th answer a_i of a query has a_i − i free entities before it; an offset per query keeps all of it sorted.
    stride = num_entities + 1
    before = answer - (np.arange(len(answer)) - start_B[owner]) + owner * stride
    passed = np.searchsorted(before, drawn + np.arange(num_queries)[:, None] * stride, side="right") - start_B[:, None]
    return np.minimum(drawn + passed, num_entities - 1), free_B > 0
