"""One graph from files to its result record: plan, rank (in several processes if so started), summarise, store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gamma_kg.data.benchmark import Benchmark, Split
from gamma_kg.data.leakage import leakage_of
from gamma_kg.errors import NonFiniteScoreError
from gamma_kg.evaluation.evaluate import SplitRanker
from gamma_kg.evaluation.metrics import adjusted_mean_rank_index, rank_metrics
from gamma_kg.evaluation.options import EvaluationOptions, Plan
from gamma_kg.evaluation.plan import QueryBatch, QueryPlan
from gamma_kg.evaluation.ranking import UNRANKED, RivalCounts
from gamma_kg.evaluation.relations import HeadBatch, RelationPlan, RelationRanker
from gamma_kg.evaluation.store import FORMAT, Partial, ResultStore, result_key
from gamma_kg.evaluation.strata import stratify
from gamma_kg.machine.memory import peak_memory_mb
from gamma_kg.machine.processes import Processes
from gamma_kg.predicting.background import FAR
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.models import NamedModel
from gamma_kg.predicting.switch import triples_for, what_auto_means

Batch = TypeVar("Batch", QueryBatch, HeadBatch)


class Progress:
    """What a run tells while it works; this one keeps silent."""

    def graph(self, name: str, total: int, done: int) -> None:
        """Ranking starts: `total` answers, of which `done` were ranked by an earlier run."""

    def advance(self, count: int) -> None:
        """`count` more answers are ranked."""


def evaluate_benchmark(
    benchmark: Benchmark,
    model: NamedModel,
    options: EvaluationOptions,
    *,
    out: Path | None = None,
    fresh: bool = False,
    processes: Processes | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The result record of one graph. With `out`, a finished graph is not ranked again, an unfinished one goes on."""
    processes, progress = processes or Processes(), progress or Progress()
    if not isinstance(model.predictor, Gamma):  # baselines know whole graphs only
        options = replace(options, local="off")
    task = options.task_on(benchmark)
    key = result_key(
        model=model.hash,
        data=benchmark.data_hash(options.split, published_filter=options.published_filter),
        split=options.split,
        task=task,
        limit=[options.limit, options.seed] if options.limit else None,
        **({"rules": True} if options.rules else {}),
        # What comes from whole graphs keeps the key that it always had.
        **({} if options.local == "off" else {"local": [str(options.local), what_auto_means(), FAR]}),
    )
    store = ResultStore(out) if out is not None else None
    # Relations and entities of the same graph, with and without rules, local and whole, may be in the same folder.
    label = f"{benchmark.name}.relation" if task == "relation" else benchmark.name
    label += ".rules" if options.rules else ""
    label += ".local" if options.local != "off" else ""

    def finished() -> dict[str, Any] | tuple[dict[str, Any], RivalCounts] | None:
        """The record if it says all that is wanted, else what there is of it."""
        found = store.finished(label, options.split, key) if store is not None and processes.is_first else None
        found = processes.from_first(found)
        return found[0] if found is not None and not set(options.by) - found[0].get("by", {}).keys() else found

    if not fresh and isinstance(found := finished(), dict):
        return found
    with store.alone(label, options.split) if store is not None and processes.is_first else nullcontext():
        if store is not None and fresh and processes.is_first:
            store.discard(label, options.split)
        if isinstance(found := finished(), dict):  # by another process, just before this one was alone
            return found
        split = benchmark.split(options.split, published_filter=options.published_filter)
        plan = options.plan(benchmark, split)
        if found is not None:
            result, counts = found
        else:
            partial = _partial(store, label, options.split, key, len(plan), processes)
            counts = _rank(split, plan, model, options, partial, benchmark.name, processes, progress)
            result = _summary(benchmark, split, plan, counts, options, task)
            result |= {"model": _described(model), "key": key, "leakage": leakage_of(benchmark.name, model.trained_on)}
            result |= _cost(partial.elapsed, len(plan), processes)
        result = _ordered(result | {"by": result.get("by", {}) | _strata(options.by, benchmark, split, plan, counts)})
        if store is not None and processes.is_first:
            store.save(label, result, counts)
            store.drop_partials(label, options.split)
        return result


def _described(model: NamedModel) -> dict[str, Any]:
    target = {"learnt_target": model.learnt_target} if model.learnt_target else {}
    facts = {"name": model.name, "hash": model.hash, "description": model.description}
    return {**facts, "trained_on": list(model.trained_on), **target}


def _partial(store: ResultStore | None, name: str, split: str, key: str, size: int, processes: Processes) -> Partial:
    if store is None:
        return Partial(Path(), key, RivalCounts.empty(size), 0.0)
    partial = store.partial(name, split, key, size, processes.number)
    # Everybody has read what is there before anybody writes.
    processes.gather(None)
    return partial


def _rank(
    split: Split,
    plan: Plan,
    model: NamedModel,
    options: EvaluationOptions,
    partial: Partial,
    name: str,
    processes: Processes,
    progress: Progress,
) -> RivalCounts:
    """Rank what is left. Whole batches are dealt out, so each is made up as it would be in one process."""
    counts, can_save = partial.counts, partial.path != Path()
    todo = [i for i in range(plan.num_batches) if (counts.above[plan.batch(i).position] == UNRANKED).any()]
    progress.graph(name, len(plan), int((counts.above != UNRANKED).sum()))
    rank_batch = _ranker(split, plan, model, options)
    try:
        for index in todo[processes.number :: processes.count]:
            progress.advance(rank_batch(index, counts) * processes.count)
            if can_save:
                partial.save_now_and_then()
    except NonFiniteScoreError as error:
        raise NonFiniteScoreError(f"{name}, model {model.name}: {error}; nothing was ranked with them") from None
    except BaseException:
        if can_save:
            partial.save()
        raise
    counts.take_over(processes.gather(counts))
    if not counts.is_complete:
        raise AssertionError("some answers were not ranked")
    return counts


def _ranker(
    split: Split, plan: Plan, model: NamedModel, options: EvaluationOptions
) -> Callable[[int, RivalCounts], int]:
    """A function that ranks batch `index` of the plan into the counts and says how many answers that were."""
    if isinstance(plan, RelationPlan):
        return _steps(plan.batch, RelationRanker(model.predictor, split, options.how).rank)
    return _steps(plan.batch, SplitRanker(model.predictor, split, options.how).rank)


def _steps(
    batch_at: Callable[[int], Batch], rank: Callable[[Batch, RivalCounts], None]
) -> Callable[[int, RivalCounts], int]:
    def step(index: int, counts: RivalCounts) -> int:
        batch = batch_at(index)
        rank(batch, counts)
        return len(batch.position)

    return step


def _summary(
    benchmark: Benchmark,
    split: Split,
    plan: Plan,
    counts: RivalCounts,
    options: EvaluationOptions,
    task: str,
) -> dict[str, Any]:
    published, fair = counts.published_rank(), counts.fair_rank()
    entry = benchmark.entry
    directions = {"tail": ~plan.is_head, "head": plan.is_head} if isinstance(plan, QueryPlan) else {}
    return {
        "format": FORMAT,
        "dataset": benchmark.name,
        "title": entry.name if entry else benchmark.name,
        "group": benchmark.group,
        "split": options.split,
        "task": task,
        **({"rules": True} if options.rules else {}),
        **rank_metrics(published),
        "amri": adjusted_mean_rank_index(fair, counts.total),
        "fair": rank_metrics(fair),
        **{name: rank_metrics(published[mask]) for name, mask in directions.items() if mask.any()},
        "tied_share": float((counts.tied > 0).mean()) if len(plan) else 0.0,
        "triples": len(np.unique(plan.triple)),
        "triples_in_split": len(split.queries),
        "queries": len(plan),
        "distinct_queries": plan.num_distinct,
        "limit": {"triples": options.limit, "seed": options.seed} if options.limit else None,
        "local": triples_for(split.num_entities, len(split.graph), options.local),
        "graph": {"entities": split.num_entities, "relations": split.num_relations, "triples": len(split.graph)},
        "filter": "published" if options.published_filter else "own",
        "data_hash": benchmark.data_hash(options.split, published_filter=options.published_filter),
    }


def _strata(
    names: Sequence[str], benchmark: Benchmark, split: Split, plan: Plan, counts: RivalCounts
) -> dict[str, Any]:
    if not isinstance(plan, QueryPlan):
        return {}
    return {name: stratify(name, benchmark, split, plan, counts) for name in names}


def _cost(seconds: float, queries: int, processes: Processes) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 3),
        "queries_per_second": round(queries / seconds, 2) if seconds else None,
        "peak_memory_mb": max(processes.gather(peak_memory_mb())),
        "processes": processes.count,
    }


def _ordered(result: dict[str, Any]) -> dict[str, Any]:
    """The keys a reader looks for first."""
    first = (
        "format",
        "dataset",
        "title",
        "group",
        "split",
        "task",
        "model",
        "mrr",
        "hits@1",
        "hits@3",
        "hits@10",
        "mr",
    )
    return {key: result[key] for key in first} | {key: value for key, value in result.items() if key not in first}
