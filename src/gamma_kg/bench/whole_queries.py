"""Whole queries: how many per second, how much memory a batch takes, and how both grow with the graph."""

from __future__ import annotations

import time
from functools import partial

import torch

from gamma_kg.bench.fb15k237 import Counts, generated_graph
from gamma_kg.bench.timing import best_times, peak_memory_of, threads
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.inference import batch_size, cached_queries


def measure_queries(kg: KnowledgeGraph, preset: str, count: int, rounds: int, num_threads: int) -> dict[str, float]:
    """Queries per second with relation states at hand, and milliseconds of a relation pass per relation."""
    gamma = Gamma.from_preset(preset)
    source, relation = distinct_queries(kg, count)
    _ = kg.edges, kg.relation_graph  # made once per graph, not per query
    with threads(num_threads):
        started = time.perf_counter()
        gamma.scores(kg, source, relation, local="off")
        first = time.perf_counter() - started
        again = best_times({"scores": lambda: gamma.scores(kg, source, relation, local="off")}, rounds)["scores"]
    passes = len(kg.direct(relation).unique())
    return {"queries per second": count / again, "ms per relation pass": 1e3 * max(first - again, 0.0) / passes}


def measure_memory(kg: KnowledgeGraph, preset: str, count: int) -> dict[str, float] | None:
    """Peak memory of scoring a batch, in state tensors (B·N·D floats); None where the system does not tell."""
    gamma = Gamma.from_preset(preset)
    count = min(count, cached_queries(gamma.model, kg.num_entities))  # a batch is no larger
    source, relation = distinct_queries(kg, count)
    gamma.scores(kg, source, relation, local="off")  # relation states, edges and pools of memory are there
    state_bytes = count * kg.num_entities * gamma.config.dim * gamma.model.score.out.weight.element_size()
    # A budget that lets all queries into one batch.
    memory = state_bytes * 64
    assert batch_size(gamma.model, kg, memory) >= count
    peak = peak_memory_of(lambda: gamma.scores(kg, source, relation, memory=memory, local="off"))
    if peak is None:
        return None
    return {"queries": count, "bytes": peak, "state tensors": peak / state_bytes}


def measure_growth(sizes: list[int], preset: str, num_threads: int) -> list[dict[str, float]]:
    """One query on generated graphs of growing size (ten triples per entity): time per edge and peak memory."""
    gamma = Gamma.from_preset(preset)
    rows = []
    for triples in sizes:
        kg = generated_graph(Counts(triples // 10, 100, triples))
        relation = torch.tensor([0])
        source = kg.triples[:1, 0]
        query = partial(gamma.scores, kg, source, relation, local="off")
        with threads(num_threads):
            query()  # makes edges, relation graph and relation states
            peak = peak_memory_of(query)
            seconds = best_times({"query": query}, 5 if triples <= 10**6 else 2)["query"]
        row = {"triples": kg.num_triples, "entities": kg.num_entities, "seconds": seconds}
        row["ns per edge"] = 1e9 * seconds / kg.edges.num_edges
        if peak is not None:
            row["peak bytes"] = peak
        rows.append(row)
        del kg, query
    return rows


def distinct_queries(kg: KnowledgeGraph, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries of the graph's own facts, none twice, about few relations: what an evaluation asks."""
    generator = torch.Generator().manual_seed(0)
    by_relation = kg.triples[kg.triples[:, 1].argsort(stable=True)]
    start = int(torch.randint(max(len(by_relation) - 40 * count, 1), (1,), generator=generator))
    source, relation, _ = by_relation[start : start + 40 * count].T
    first = torch.stack((source, relation)).unique(dim=1)
    chosen = first[:, torch.randperm(first.shape[1], generator=generator)[:count]]
    return chosen[0], chosen[1]
