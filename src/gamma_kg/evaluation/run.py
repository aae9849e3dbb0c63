"""One graph from files to its result record: plan, rank (in several processes if so started), summarise, store."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gamma_kg.data.benchmark import Benchmark, Split
from gamma_kg.errors import ConfigError, did_you_mean
from gamma_kg.evaluation.distributed import Processes
from gamma_kg.evaluation.evaluate import UNRANKED, NonFiniteScoreError, RivalCounts, SplitRanker
from gamma_kg.evaluation.metrics import adjusted_mean_rank_index, rank_metrics
from gamma_kg.evaluation.models import NamedModel
from gamma_kg.evaluation.queries import QueryPlan
from gamma_kg.evaluation.store import FORMAT, Partial, ResultStore, result_key
from gamma_kg.evaluation.strata import STRATIFIERS, stratify

TASKS = ("paper", "ultra", "both", "tail")


@dataclass(frozen=True)
class EvaluationOptions:
    """What is evaluated. `task`: as the paper, as ULTRA's README, or both directions or tails on every set."""

    split: str = "test"
    task: str = "paper"
    limit: int | None = None
    seed: int = 0
    memory: str | int | None = None
    by: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.split not in ("valid", "test"):
            raise ConfigError(f"split must be valid or test, got {self.split!r}")
        if self.task not in TASKS:
            raise ConfigError(f"no task {self.task!r}{did_you_mean(self.task, TASKS)}; tasks: {', '.join(TASKS)}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit must be at least 1, got {self.limit}")
        for name in self.by:
            if name not in STRATIFIERS:
                hint = did_you_mean(name, STRATIFIERS)
                raise ConfigError(f"can't split results by {name!r}{hint}; by: {', '.join(STRATIFIERS)}")

    def tails_only(self, benchmark: Benchmark) -> bool:
        tail_sets = {benchmark.task} | ({benchmark.entry.ultra_task} if benchmark.entry else set())
        return {"paper": benchmark.task == "tail", "ultra": "tail" in tail_sets, "both": False, "tail": True}[self.task]


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
    tails_only = options.tails_only(benchmark)
    key = result_key(
        model=model.hash,
        data=benchmark.data_hash(options.split),
        split=options.split,
        tails_only=tails_only,
        limit=[options.limit, options.seed] if options.limit else None,
    )
    store = ResultStore(out) if out is not None else None
    if store is not None and fresh and processes.is_first:
        store.discard(benchmark.name, options.split)
    found = store.finished(benchmark.name, options.split, key) if store is not None and processes.is_first else None
    found = processes.from_first(found)
    if found is not None and not set(options.by) - found[0].get("by", {}).keys():
        return found[0]
    split = benchmark.split(options.split)
    plan = QueryPlan.build(split, tails_only=tails_only, limit=options.limit, seed=options.seed)
    if found is not None:
        result, counts = found
    else:
        partial = _partial(store, benchmark.name, options.split, key, len(plan), processes)
        counts = _rank(split, plan, model, options, partial, benchmark.name, processes, progress)
        result = _summary(benchmark, split, plan, counts, options, tails_only)
        result |= {"model": {"name": model.name, "hash": model.hash, "description": model.description}, "key": key}
        result |= _cost(partial.elapsed, len(plan), processes)
    result = _ordered(result | {"by": result.get("by", {}) | _strata(options.by, benchmark, split, plan, counts)})
    if store is not None and processes.is_first:
        store.save(result, counts)
        store.drop_partials(benchmark.name, options.split)
    return result


def _partial(store: ResultStore | None, name: str, split: str, key: str, size: int, processes: Processes) -> Partial:
    if store is None:
        return Partial(Path(), key, RivalCounts.empty(size), 0.0)
    partial = store.partial(name, split, key, size, processes.rank)
    # Everybody has read what is there before anybody writes.
    processes.gather(None)
    return partial


def _rank(
    split: Split,
    plan: QueryPlan,
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
    ranker = SplitRanker(model.scorer, split, memory=options.memory)
    try:
        for index in todo[processes.rank :: processes.world]:
            batch = plan.batch(index)
            ranker.rank(batch, counts)
            progress.advance(len(batch.position) * processes.world)
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


def _summary(
    benchmark: Benchmark,
    split: Split,
    plan: QueryPlan,
    counts: RivalCounts,
    options: EvaluationOptions,
    tails_only: bool,
) -> dict[str, Any]:
    published, fair = counts.published_rank(), counts.fair_rank()
    entry = benchmark.entry
    directions = {"tail": ~plan.is_head, "head": plan.is_head}
    return {
        "format": FORMAT,
        "dataset": benchmark.name,
        "title": entry.name if entry else benchmark.name,
        "group": benchmark.group,
        "split": options.split,
        "task": "tail" if tails_only else "both",
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
        "graph": {"entities": split.num_entities, "relations": split.num_relations, "triples": len(split.graph)},
        "leakage": entry.leakage if entry else "unknown",
        "data_hash": benchmark.data_hash(options.split),
    }


def _strata(
    names: Sequence[str], benchmark: Benchmark, split: Split, plan: QueryPlan, counts: RivalCounts
) -> dict[str, Any]:
    return {name: stratify(name, benchmark, split, plan, counts) for name in names}


def _cost(seconds: float, queries: int, processes: Processes) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 3),
        "queries_per_second": round(queries / seconds, 2) if seconds else None,
        "peak_memory_mb": max(processes.gather(peak_memory_mb())),
        "processes": processes.world,
    }


def peak_memory_mb() -> float:
    """Largest resident size of this process so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)


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
