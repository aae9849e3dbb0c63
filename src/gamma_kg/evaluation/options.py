"""What is evaluated, and how: the options of `gamma evaluate`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gamma_kg.data.benchmark import Benchmark, Split
from gamma_kg.errors import ConfigError, did_you_mean
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.evaluation.relations import RelationPlan
from gamma_kg.evaluation.strata import STRATIFIERS
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.switch import Local, triples_for

TASKS = ("both", "tail", "ultra", "relation")

Plan = QueryPlan | RelationPlan


@dataclass(frozen=True)
class EvaluationOptions:
    """What is evaluated. `task`: both directions, tails or relations; or tails where ULTRA's README has them.

    `published_filter` filters validation by test triples too, as the published code does: for comparison only.
    """

    split: str = "test"
    task: str = "both"
    limit: int | None = None
    seed: int = 0
    memory: str | int | None = None
    by: Sequence[str] = ()
    published_filter: bool = False
    rules: bool = False
    """Rank last what contradicts the graph's own patterns, as `predict` leaves it out; the published tables do not."""
    local: Local = "off"  # published figures are of whole graphs

    def __post_init__(self) -> None:
        if self.split not in ("valid", "test"):
            raise ConfigError(f"split must be valid or test, got {self.split!r}")
        if self.task not in TASKS:
            raise ConfigError(f"no task {self.task!r}{did_you_mean(self.task, TASKS)}; tasks: {', '.join(TASKS)}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit must be at least 1, got {self.limit}")
        triples_for(0, 0, self.local)  # refuses what it can't mean
        for name in self.by:
            if name not in STRATIFIERS:
                hint = did_you_mean(name, STRATIFIERS)
                raise ConfigError(f"can't split results by {name!r}{hint}; by: {', '.join(STRATIFIERS)}")
        if self.by and self.task == "relation":
            raise ConfigError("results of --task relation can't be split --by: strata are of entity queries")
        if self.rules and self.task == "relation":
            raise ConfigError("--rules and --task relation do not go together: rules here are of entity queries")

    @property
    def how(self) -> AnswerOptions:
        return AnswerOptions(rules=self.rules, memory=self.memory, local=self.local)

    def task_on(self, benchmark: Benchmark) -> str:
        """both, tail or relation."""
        if self.task != "ultra":
            return self.task
        return benchmark.entry.ultra_task if benchmark.entry is not None else "both"

    def plan(self, benchmark: Benchmark, split: Split) -> Plan:
        task = self.task_on(benchmark)
        if task == "relation":
            return RelationPlan.build(split, limit=self.limit, seed=self.seed)
        return QueryPlan.build(split, tails_only=task == "tail", limit=self.limit, seed=self.seed)
