"""Validation MRR while training. Only validation sets are read here, never a test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gamma_kg.data.benchmark import Split, load_benchmark
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.metrics import rank_metrics
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.nn.model import GammaModel
from gamma_kg.predicting.gamma import Gamma


def load_validation(names: Sequence[str], data_dir: str | Path | None = None) -> dict[str, Split]:
    """The validation splits of benchmarks, by name."""
    loaded = (load_benchmark(name, data_dir) for name in names)
    return {benchmark.name: benchmark.split("valid") for benchmark in loaded}


def validator(splits: Mapping[str, Split], limit: int | None) -> Callable[[GammaModel], dict[str, float]]:
    """A function from a model to its MRR (fair rank) per split, always over the same `limit` triples."""
    plans = {name: QueryPlan.build(split, limit=limit) for name, split in splits.items()}

    def validate(model: GammaModel) -> dict[str, float]:
        gamma = Gamma(model)
        return {
            name: rank_metrics(rank_split(gamma, split, plans[name]).fair_rank())["mrr"]
            for name, split in splits.items()
        }

    return validate
