"""Local answers against those from the whole graph: queries per second, and how a query grows with the graph.

Both are asked in turns, with relation states and backgrounds at hand, up to the ten best answers of each query. Graphs
of growing size are generated, or, where stores of such sizes are given, these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from gamma_kg.bench.fb15k237 import Counts, generated_graph
from gamma_kg.bench.timing import best_times, own_memory, threads
from gamma_kg.bench.whole_queries import distinct_queries
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.switch import Local, budget_of

# Name, how many queries of each kind are asked at once (whole, local), and how many times faster local is to be.
BENCHMARKS = (("fb15k237", 4, 64, 5.0), ("codex-m", 4, 64, 8.0))
GROWTH = (10**5, 10**6, 10**7)  # triples of generated graphs, ten per entity
# A graph of growing size with at least so many triples is asked whole too, once or twice; beyond the most it can't be.
LEAST_WHOLE, MOST_WHOLE = 5 * 10**6, 2 * 10**7
LARGEST_AIM = 200.0
WHOLE_QUERIES, NEAR_QUERIES = 1, 16
TOP = 10


def run_local_bench(
    data_dir: Path | None,
    stores: Sequence[Path],
    *,
    rounds: int,
    num_threads: int,
    growth: bool,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Ratios on benchmark graphs, and with `growth` or `stores` the time of a query on larger and larger graphs."""
    gamma = Gamma.from_pretrained()
    record: dict[str, Any] = {"ratios": [], "growth": [], "targets": []}
    with threads(num_threads):
        for name, whole, near, aim in BENCHMARKS:
            tell(name)
            try:
                split = load_benchmark(name, data_dir).split("test")
            except DataError as error:
                tell(f"left out: {error}")
                continue
            kg = KnowledgeGraph(split.graph, split.entities, split.relations)
            record["ratios"].append({"graph": name, **measure_ratio(gamma, kg, whole, near, rounds), "aim": aim})
        for kg, opening in _growing(stores, GROWTH if growth else (), tell):
            record["growth"].append(measure_query(gamma, kg, rounds) | {"opening": opening})
            if LEAST_WHOLE <= kg.num_triples <= MOST_WHOLE:
                tell("the same, whole")
                found = measure_ratio(gamma, kg, WHOLE_QUERIES, NEAR_QUERIES, 1, some_queries(kg, NEAR_QUERIES))
                record["ratios"].append({"graph": f"{kg.num_triples:,} triples", **found, "aim": LARGEST_AIM})
    record["targets"] = [
        {"name": f"{row['graph']}: times faster", "value": row["ratio"], "limit": row["aim"]}
        | {"reached": row["ratio"] >= row["aim"]}
        for row in record["ratios"]
    ]
    return record


def _growing(
    stores: Sequence[Path], sizes: Sequence[int], tell: Callable[[str], None]
) -> Iterator[tuple[KnowledgeGraph, float]]:
    """Graphs, smaller ones first, and how long it took to open each; none is generated of a size that a store has."""
    found: list[tuple[int, str, KnowledgeGraph | None, float]] = []
    for path in stores:
        started = time.perf_counter()
        opened = KnowledgeGraph.from_file(path)
        found.append((opened.num_triples, str(path), opened, time.perf_counter() - started))
    missing = [size for size in sizes if not any(size / 2 < other[0] < 2 * size for other in found)]
    found += [(size, "", None, 0.0) for size in missing]
    for size, where, kg, seconds in sorted(found, key=lambda one: one[:2]):
        tell(where or f"a generated graph of {size:,} triples")
        yield kg or generated_graph(Counts(size // 10, 100, size)), seconds


def measure_ratio(
    gamma: Gamma,
    kg: KnowledgeGraph,
    whole: int,
    near: int,
    rounds: int,
    queries: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> dict[str, float]:
    """Queries per second both ways; what is made once per graph or relation is made before."""
    source, relation = queries or distinct_queries(kg, max(whole, near))
    triples = budget_of(kg.num_entities, kg.num_triples)
    ask_best(gamma, kg, source, relation, triples)
    tasks = {
        "whole": lambda: ask_best(gamma, kg, source[:whole], relation[:whole], "off"),
        "local": lambda: ask_best(gamma, kg, source[:near], relation[:near], triples),
    }
    seconds = best_times(tasks, rounds)
    rates = {"whole": whole / seconds["whole"], "local": near / seconds["local"]}
    return {**rates, "ratio": rates["local"] / rates["whole"], "triples": triples}


def measure_query(gamma: Gamma, kg: KnowledgeGraph, rounds: int) -> dict[str, float]:
    """One query at a time: the first of its relation (which makes the background), then others."""
    source, relation = some_queries(kg, 32)
    triples = budget_of(kg.num_entities, kg.num_triples)
    _ = kg.edges, kg.relation_graph
    started = time.perf_counter()
    ask_best(gamma, kg, source[:1], relation[:1], triples)
    first = time.perf_counter() - started

    def one_by_one() -> None:
        for q in range(len(source)):
            ask_best(gamma, kg, source[q : q + 1], relation[q : q + 1], triples)

    one_by_one()
    began = time.process_time()
    one_by_one()
    processor = (time.process_time() - began) / len(source)
    return {
        "triples": kg.num_triples,
        "entities": kg.num_entities,
        "first": first,
        "seconds": best_times({"queries": one_by_one}, rounds)["queries"] / len(source),
        "processor seconds": processor,
        "budget": triples,
        **own_memory(),
    }


def ask_best(gamma: Gamma, kg: KnowledgeGraph, source: torch.Tensor, relation: torch.Tensor, local: Local) -> None:
    """The best new answers of each query by id, as `predict` finds them."""
    for batch in gamma.score_batches(kg, source, relation, local=local):
        for q, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
            answers, known = batch.answers(row), kg.answers(int(source[q]), int(relation[q]))
            answers.best(TOP, known)
            answers.log_total(known)


def some_queries(kg: KnowledgeGraph, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries of one relation from entities at even distances that have edges; no list of triples is needed."""
    edges = kg.edges
    group = torch.linspace(0, edges.num_groups - 1, count, dtype=torch.double).long()
    source = torch.searchsorted(edges.node_ptr, group, right=True) - 1
    return source, torch.zeros_like(source)
