"""Graphs to measure on: FB15k-237 where it is at hand, else one generated with the same counts and a like skew."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph


class Counts(NamedTuple):
    entities: int
    relations: int
    triples: int


FB15K237 = Counts(14_541, 237, 272_115)


def benchmark_graph(data_dir: Path | None) -> tuple[str, KnowledgeGraph]:
    """The name and the graph; a folder that the user names must hold the data."""
    try:
        split = load_benchmark("fb15k237", data_dir).split("test")
    except DataError:
        if data_dir is not None:
            raise
        return "generated, counts of FB15k-237", generated_graph(FB15K237)
    return "FB15k-237", KnowledgeGraph(split.graph, split.entities, split.relations)


def generated_graph(counts: Counts, seed: int = 0) -> KnowledgeGraph:
    """A random graph whose degrees, relation sizes and (entity, relation) groups are skewed as in FB15k-237."""
    names = (range(counts.entities), range(counts.relations))
    entities, relations = ([str(i) for i in ids] for ids in names)
    return KnowledgeGraph(generated_triples(counts, seed), entities, relations)


def generated_triples(counts: Counts, seed: int = 0) -> NDArray[np.int64]:
    """As many distinct triples as asked for; a graph too small for them gets fewer."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(counts.entities)
    key = np.zeros(0, dtype=np.int64)
    for _ in range(20):  # repeated triples count once, so that one draw is seldom enough
        key = np.unique(np.concatenate((key, _drawn_keys(counts, order, rng))))
        if len(key) >= counts.triples:
            break
    key = rng.permutation(key)[: counts.triples]
    pair, tail = np.divmod(key, counts.entities)
    return np.column_stack((pair // counts.relations, pair % counts.relations, tail))


def _drawn_keys(counts: Counts, order: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Triples as single integers. Each relation draws from small pools of heads and tails of its own."""
    size_R = rng.multinomial(counts.triples * 6 // 5, np.diff(_skew(counts.relations, 1.0, 3.0), prepend=0.0))
    popularity = _skew(counts.entities, 0.6, 10.0)
    parts = []
    for relation, size in enumerate(size_R):
        ends = []
        for share in (0.2, 0.05):
            pool_size = max(2, int(counts.entities * share * rng.random() ** 2))
            pool = order[np.searchsorted(popularity, rng.random(pool_size))]
            ends.append(pool[np.searchsorted(_skew(pool_size, 0.7, 2.0), rng.random(size))])
        parts.append((ends[0] * counts.relations + relation) * counts.entities + ends[1])
    return np.concatenate(parts)


def _skew(count: int, exponent: float, offset: float) -> NDArray[np.float64]:
    """Cumulative probabilities of ranks 0 .. count-1, falling as a power."""
    weight = (np.arange(count) + offset) ** -exponent
    total = weight.cumsum()
    return np.asarray(total / total[-1])
