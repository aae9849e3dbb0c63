"""Logical queries of three steps: by the engine, and by torch the way the official executor takes them.

The official executor's code can't be run here; `bench/torch_steps.py` stands in for it. A link-prediction query of ours
is timed too. All take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gamma_kg.bench.timing import best_times, threads
from gamma_kg.bench.torch_steps import BATCH, TorchSteps
from gamma_kg.bench.whole_queries import distinct_queries
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.logical import graph_of
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import Formula
from gamma_kg.logic.predicted import ULTRAQUERY, ModelProjection
from gamma_kg.logic.project import Projector
from gamma_kg.logic.sample import Facts, sample_queries
from gamma_kg.predicting.gamma import Gamma

GRAPH, SHAPE = "codex-s", "3p"


def run_query_bench(
    data_dir: Path | None, *, rounds: int, num_threads: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Seconds a query of three steps both ways, and of one link-prediction query, each in batches of eight."""
    tell(f"{SHAPE} queries on {GRAPH}")
    split = load_benchmark(GRAPH, data_dir).split("test")
    kg = graph_of(split)
    facts = Facts(split.graph, split.known, split.num_entities, split.num_relations)
    formulas = [query.formula for query in sample_queries(facts, BATCH, shapes=(SHAPE,), seed=0)]
    gamma = Gamma.from_preset("ultra")
    source, relation = distinct_queries(kg, BATCH)
    tasks = {
        "three steps": lambda: run_batch(formulas, ModelProjection(gamma, kg, ULTRAQUERY, local="off")),
        "link prediction": lambda: gamma.scores(kg, source, relation, local="off"),
        "three steps by torch": lambda: run_batch(formulas, TorchSteps(gamma.model, kg)),
    }
    with threads(num_threads):
        per_query = {name: taken / BATCH for name, taken in best_times(tasks, rounds).items()}
    ours = per_query["three steps"]
    values = {
        "three steps: link-prediction queries in the same time": ours / per_query["link prediction"],
        "three steps: times faster than by torch": per_query["three steps by torch"] / ours,
    }
    return {"graph": GRAPH, "seconds": per_query, "values": values}


@torch.no_grad()
def run_batch(formulas: list[Formula], projector: Projector) -> None:
    execute(formulas, projector)
