"""Logical queries of a benchmark: sampled or read, answered by a projector, summed up per shape and balance."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gamma_kg.data.benchmark import Split
from gamma_kg.errors import ConfigError
from gamma_kg.evaluation.query_metrics import score_query, summary
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import beginning
from gamma_kg.logic.fuzzy import LOGICS, Logic
from gamma_kg.logic.predicted import ModelProjection, StepOptions, steps_of
from gamma_kg.logic.project import Frequency, Projector, Traversal
from gamma_kg.logic.sample import BALANCES, Facts, LogicalQuery, sample_queries
from gamma_kg.machine.memory import budget
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.models import resolve_model
from gamma_kg.predicting.switch import Local

# Fuzzy sets of a query that are held at once; most shapes have three to five.
SETS_PER_QUERY = 6
LARGEST_BATCH = 512


@dataclass(frozen=True)
class Contestant:
    """Something that answers logical queries: a name, and a projector for each graph."""

    name: str
    hash: str
    projector: Callable[[KnowledgeGraph], Projector]
    options: StepOptions | None = None


def contestant(
    name: str | None,
    *,
    memory: str | int | None = None,
    local: Local = "off",
    rules: bool = False,
    device: str = "cpu",
) -> Contestant:
    """By name: "traversal", "frequency", or a model as `gamma evaluate` knows it; MODEL@0.8 sets its threshold.

    With `rules` a model's steps go by the patterns of the graph, as those of `gamma ask` do.
    """
    if name == "traversal":
        return Contestant(name, "traversal 1", Traversal)
    if name == "frequency":
        return Contestant(name, "frequency 1", Frequency)
    path, at, threshold = (name or "").rpartition("@")
    if not at:
        path, threshold = name or "", ""
    named = resolve_model(path or None, device)
    gamma = named.predictor
    if not isinstance(gamma, Gamma):
        raise ConfigError(f"{name} can't take the steps of a logical query; a checkpoint, traversal or frequency can")
    options = steps_of(gamma)
    if threshold:
        try:
            options = replace(options, threshold=float(threshold))
        except ValueError:
            raise ConfigError(f"{name}: after @ a threshold such as 0.8 is expected, found {threshold!r}") from None
    shown = f"{named.name}@{threshold}" if threshold else named.name

    def projector(kg: KnowledgeGraph) -> Projector:
        return ModelProjection(gamma, kg, options, memory=memory, local=local, rules=rules)

    return Contestant(shown, named.hash, projector, options)


def sampled(split: Split, per_shape: int, seed: int, **options: Any) -> list[LogicalQuery]:
    """Queries of both balances: held-out facts are those that the split knows and its graph does not hold."""
    facts = Facts(split.graph, split.known, split.num_entities, split.num_relations)
    found: list[LogicalQuery] = []
    for balance in BALANCES:
        found += sample_queries(facts, per_shape, balance=balance, seed=seed, **options)
    return found


def evaluate_queries(
    queries: Sequence[LogicalQuery],
    projector: Projector,
    *,
    logic: Logic = LOGICS["product"],
    memory: str | int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Metrics per balance and shape, and the time it took. Queries without an answer to rank are passed over.

    Those that begin alike come into one batch: a set that several share is computed once there.
    """
    queries = sorted((query for query in queries if len(query.ranked)), key=lambda query: beginning(query.formula))
    row_bytes = 4 * max(projector.kg.num_entities, 1)
    size = max(1, min(LARGEST_BATCH, budget(memory) // (4 * SETS_PER_QUERY * row_bytes)))
    scores = []
    started = time.perf_counter()
    for first in range(0, len(queries), size):
        batch = queries[first : first + size]
        memberships = execute([query.formula for query in batch], projector, logic)
        scores += [score_query(query, memberships[query.formula]) for query in batch]
        if progress is not None:
            progress(first + len(batch), len(queries))
    seconds = time.perf_counter() - started
    by_balance = {
        balance: summary([s for s, query in zip(scores, queries, strict=True) if query.balance == balance])
        for balance in BALANCES
    }
    return {**by_balance, "queries": len(queries), "seconds": seconds}
