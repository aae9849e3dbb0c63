"""Logical queries of three steps: by the engine, and by torch the way the official executor takes them.

The official executor is no part of this; `bench/torch_steps.py` stands in for it, once with sums over edges that are
quicker than its own and once with slower ones: it lies between. A link-prediction query of ours is timed too. All take
turns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gamma_kg.bench.timing import Task, best_times, threads
from gamma_kg.bench.torch_steps import BATCH, TorchSteps, by_scatter
from gamma_kg.bench.whole_queries import distinct_queries
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.split_graph import graph_of
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import Formula
from gamma_kg.logic.predicted import ULTRAQUERY, ModelProjection
from gamma_kg.logic.project import Projector
from gamma_kg.logic.sample import Facts, sample_queries
from gamma_kg.predicting.gamma import Gamma

# A graph that is computed on as a whole, and one that is asked locally unless told otherwise.
SMALL, LARGE, SHAPE = "codex-s", "fb15k237", "3p"


def run_query_bench(
    data_dir: Path | None, *, rounds: int, num_threads: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Seconds a query of three steps each way, and of one link-prediction query, in batches of eight."""
    gamma, seconds = Gamma.from_preset("ultra"), {}
    for name in (SMALL, LARGE):
        tell(f"{SHAPE} queries on {name}")
        kg, formulas = queries_of(name, data_dir)
        with threads(num_threads):
            # The larger one takes seconds by torch.
            taken = best_times(tasks_on(kg, formulas, gamma), rounds if name == SMALL else max(1, rounds // 15))
        seconds[name] = {task: time / BATCH for task, time in taken.items()}
    values = {}
    for name, taken in seconds.items():
        values[f"{name}: passes of link prediction for three steps"] = taken["whole"] / taken["link prediction"]
        for kind, theirs in taken.items():
            if kind.startswith("torch"):
                for ours in ("whole", "local"):
                    if ours in taken:
                        values[f"{name}, {ours}: times faster than by {kind}"] = theirs / taken[ours]
    return {"seconds": seconds, "values": values}


def queries_of(name: str, data_dir: Path | None, count: int = BATCH) -> tuple[KnowledgeGraph, list[Formula]]:
    """Queries of three steps on a benchmark, a batch if not told how many."""
    split = load_benchmark(name, data_dir).split("test")
    facts = Facts(split.graph, split.known, split.num_entities, split.num_relations)
    queries = sample_queries(facts, count, shapes=(SHAPE,), seed=0)
    return graph_of(split), [query.formula for query in queries]


def tasks_on(kg: KnowledgeGraph, formulas: list[Formula], gamma: Gamma) -> dict[str, Task]:
    """What is timed: ours on the whole graph and, where a question is answered so, locally; and the ways of torch."""
    source, relation = distinct_queries(kg, BATCH)
    projectors: dict[str, Projector] = {"whole": ModelProjection(gamma, kg, ULTRAQUERY, local="off")}
    as_asked = ModelProjection(gamma, kg, ULTRAQUERY)
    if as_asked.local is None:
        projectors["torch, sums by scatter"] = TorchSteps(gamma.model, kg, by_scatter)
    else:  # there a message for every edge would take gigabytes
        projectors["local"] = as_asked
    projectors["torch, sums by our engine"] = TorchSteps(gamma.model, kg)
    tasks: dict[str, Task] = {"link prediction": lambda: gamma.scores(kg, source, relation, local="off")}
    for name, projector in projectors.items():
        tasks[name] = partial(run_batch, formulas, projector)
    return tasks


@torch.no_grad()
def run_batch(formulas: list[Formula], projector: Projector) -> None:
    execute(formulas, projector)
