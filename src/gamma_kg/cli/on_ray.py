"""What `gamma predict` and `gamma complete` do with --ray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gamma_kg.cli.progress_bar import progress_bar
from gamma_kg.cli.saying import say

if TYPE_CHECKING:
    from gamma_kg import GammaBatch, KnowledgeGraph
    from gamma_kg.complete import Completion
    from gamma_kg.distributed.parts import Parts
    from gamma_kg.predicting.answer_options import AnswerOptions
    from gamma_kg.predicting.prediction import Query
    from gamma_kg.predicting.predictor import Predictor


def batch_of(graph: str, kg: KnowledgeGraph, model: str | None, predictor: Predictor, how: AnswerOptions) -> GammaBatch:
    """What is sent to the workers; they open the graph by its path, so it must be a store."""
    from gamma_kg import GammaBatch
    from gamma_kg.errors import DataError

    if kg.path is None:
        raise DataError(f"--ray wants a store, which every worker opens: gamma index {graph} --out G.gamma")
    calibration = predictor.calibration(kg, how.local, how.rules)
    return GammaBatch(kg.path, model, **asdict(how), calibration=calibration)


def predict_queries(
    graph: str,
    kg: KnowledgeGraph,
    model: str | None,
    predictor: Predictor,
    queries: Sequence[Query],
    out: Path,
    address: str,
    workers: int | None,
    how: AnswerOptions,
) -> None:
    """Answers all queries into a folder of Parquet files."""
    from gamma_kg.distributed.on_ray import predict_on_ray

    batch = batch_of(graph, kg, model, predictor, how)
    with progress_bar("predicting", "queries") as progress:
        predict_on_ray(batch, queries, out, address=address, workers=workers, progress=progress)
    say(f"answers to {len(queries):,} queries in the Parquet files of {out}")


def complete_on_ray(
    graph: str,
    kg: KnowledgeGraph,
    model: str | None,
    predictor: Predictor,
    out: Path,
    address: str,
    workers: int | None,
    how: AnswerOptions,
    **wanted: Any,
) -> tuple[Completion, Parts]:
    """The most probable missing facts; what is done lies beside `out` until the end."""
    from gamma_kg.distributed import on_ray
    from gamma_kg.distributed.parts import Parts

    batch = batch_of(graph, kg, model, predictor, how)
    parts = Parts(out.with_name(out.name + ".parts"))
    with progress_bar("completing", "queries") as progress:
        options: dict[str, Any] = {"address": address, "workers": workers, "progress": progress}
        return on_ray.complete_on_ray(batch, parts.path, **wanted, **options), parts
