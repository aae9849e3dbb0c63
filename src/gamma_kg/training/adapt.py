"""Adapting: the model learns one graph from the graph itself, and is never worse for it.

Facts are hidden twice. Some to stop by: training ends when they no longer rank higher. Some to judge by: the new
weights are kept only where the gain on these is beyond chance (`judgement.py`). The rest is trained on as in
pre-training: a batch of facts is taken out of the graph and asked for.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gamma_kg.data.benchmark import Split
from gamma_kg.errors import CheckpointError, DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.linked import linked_without
from gamma_kg.graph.sampling import IntArray, TrainingGraph
from gamma_kg.io.atomic import write_text
from gamma_kg.nn.checkpoint import load_checkpoint, save_checkpoint
from gamma_kg.nn.ensemble import GammaEnsemble
from gamma_kg.nn.provenance import in_short
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.home import describe_home
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.judgement import Verdict, judge
from gamma_kg.training.loop import Trainer, Watch
from gamma_kg.training.recipes import (
    FEWEST_FACTS,
    JUDGED_ROWS,
    ONE_GRAPH_RATE,
    WATCHED_ROWS,
    affordable,
    one_graph_phase,
    weights_to_judge,
)
from gamma_kg.training.run_folder import RunFolder
from gamma_kg.training.run_record import run_record
from gamma_kg.training.training_graphs import NamedGraph
from gamma_kg.training.validation import validator

# Judging takes more facts than stopping: a small gain is told from chance only by many of them.
WATCHED_SHARE, JUDGED_SHARE = 0.05, 0.1
MOST_WATCHED, MOST_JUDGED = 200, 400
# Where fewer of the pairs that facts link are linked by others, too, these lie in a few dense corners, and say little
# of what is missing elsewhere: nl-50 (12 %) gained .026 on hidden facts of its own and lost .009 on validation triples.
FEWEST_LINKED = 0.25
# A look every eighth of the time, but not more often than every half minute: short runs are there to train. A look
# costs as much as a dozen steps, so a run of so many steps looks at half of them and at the end.
LOOKS, LEAST_BETWEEN = 8, 0.5
LOOKS_BY_STEPS = 2


@dataclass(frozen=True)
class Adapted:
    """What came of it. `gamma` has the new weights where they are better, else the old ones."""

    gamma: Gamma
    verdict: Verdict
    status: str
    steps: int
    minutes: float
    path: Path | None

    def __str__(self) -> str:
        return f"{self.status} after {self.steps:,} steps, {self.minutes:.1f} minutes: {self.verdict}"


@dataclass(frozen=True, eq=False)
class HiddenTwice:
    """Facts of a graph in three parts, under the graph's own ids. Twins that were hidden with a fact are in none."""

    train: IntArray
    watched: IntArray
    judged: IntArray


def hide_twice(triples: IntArray, num_entities: int, num_relations: int, rng: np.random.Generator) -> HiddenTwice:
    """Facts are hidden whose ends other facts link, too, so that there is something to find them by.

    What is missing may have a twin or not, and the graph does not say which. So half of the hidden facts, or fewer
    where twins are rarer, keep theirs; the others are hidden together with all facts about the same two.
    """
    triples = np.unique(triples, axis=0)
    edges, relations = Edges.of_triples(triples, num_entities, num_relations), np.bincount(triples[:, 1])
    pair, size = _pairs(triples)
    # In sparse graphs few facts will do: all are looked at there, and more than enough of large graphs. One of a pair.
    looked_at = rng.permutation(np.flatnonzero(relations[triples[:, 1]] > 1))
    looked_at = looked_at[np.sort(np.unique(pair[looked_at], return_index=True)[1])][: max(5000, 10 * MOST_JUDGED)]
    has_twin = size[pair[looked_at]] > 1
    is_linked = linked_without(edges, triples[looked_at], twins=False)
    spare = int(is_linked.sum())
    judged, watched = (
        min(affordable(rows, num_entities, most), max(FEWEST_FACTS, round(share * len(triples))), spare // 4)
        for rows, most, share in (
            (JUDGED_ROWS, MOST_JUDGED, JUDGED_SHARE),
            (WATCHED_ROWS, MOST_WATCHED, WATCHED_SHARE),
        )
    )
    if judged < FEWEST_FACTS:
        raise DataError(
            f"a graph of {len(triples):,} facts is too small or too sparse to adapt to: {FEWEST_FACTS} facts are "
            f"hidden to judge by, whose ends other facts link; only {spare:,} such facts are there. "
            "Use the model as it is"
        )
    if is_linked.mean() < FEWEST_LINKED:
        raise DataError(
            f"a graph too sparse to adapt to: of the entities that a fact links only {is_linked.mean():.0%} are linked "
            f"by others, too (wanted: {FEWEST_LINKED:.0%}), so that its facts say little of what is missing. "
            "Use the model as it is"
        )
    share = min(0.5, float(has_twin[has_twin | is_linked].mean()))
    twinned, first = looked_at[has_twin][: round(share * (judged + watched))], round(share * judged)
    alone = looked_at[is_linked & ~np.isin(looked_at, twinned)][: judged + watched - len(twinned)]
    is_seen = ~np.isin(pair, pair[alone])
    is_seen[twinned] = False
    return HiddenTwice(
        triples[is_seen],
        triples[np.append(twinned[first:], alone[judged - first :])],
        triples[np.append(twinned[:first], alone[: judged - first])],
    )


def _pairs(triples: IntArray) -> tuple[IntArray, IntArray]:
    """For each fact the number of the two entities that it links, and for each such number how many facts do."""
    ends = np.sort(triples[:, [0, 2]], axis=1)
    _, pair, size = np.unique(ends, axis=0, return_inverse=True, return_counts=True)
    return pair.reshape(-1), size


def adapt_config(num_entities: int, minutes: float, steps: int | None = None) -> TrainConfig:
    """The recipe: an average of the weights, a few looks at the watched facts.

    A number of steps instead of minutes makes a run that comes out the same on a slow and on a fast day.
    """
    if steps is not None:
        by_clock = adapt_config(num_entities, 1.0)
        often = max(1, steps // LOOKS_BY_STEPS)
        return by_clock.with_options(
            minutes=None, steps=steps, validate_minutes=0, checkpoint_minutes=0, validate_steps=often,
            checkpoint_steps=often,
        )  # fmt: skip
    return TrainConfig(
        graphs=("own",),
        phases=(one_graph_phase(num_entities),),
        steps=None,
        minutes=minutes,
        loss="softmax",
        learning_rate=ONE_GRAPH_RATE,
        warmup_steps=20,
        decay="linear",
        decay_share=0.7,
        ema_decay=0.98,
        validation=("own",),
        validation_limit=MOST_WATCHED,
        validate_minutes=max(minutes / LOOKS, min(minutes / 2, LEAST_BETWEEN)),
        patience=4,
        checkpoint_steps=0,
        checkpoint_minutes=max(minutes / 10, 0.2),
        keep=1,
        log_steps=5,
    )


def adapt(
    gamma: Gamma,
    kg: KnowledgeGraph,
    *,
    minutes: float = 5.0,
    steps: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    name: str = "own",
    seed: int = 0,
    watch: Sequence[Watch] = (),
    config: TrainConfig | None = None,
) -> Adapted:
    """Adapt a model to a graph; `folder` keeps the run, so that it can be taken up again with `resume`.

    `steps` instead of `minutes` bounds training by what is done, not by the clock: the result can be made again.
    """
    if isinstance(gamma.model, GammaEnsemble):
        raise CheckpointError("an ensemble of models can't be adapted as one: name one of its models")
    with tempfile.TemporaryDirectory(prefix="gamma-adapt-") if folder is None else nullcontext(folder) as place:
        run = RunFolder(place)
        parts = hide_twice(kg.triples.numpy(), kg.num_entities, kg.num_relations, np.random.default_rng(seed))
        graph = TrainingGraph.build("own", parts.train, kg.num_entities, kg.num_relations)
        watched, judged = (
            Split(parts.train, hidden, kg.triples.numpy(), kg.entities, kg.relations)
            for hidden in (parts.watched, parts.judged)
        )
        there = gamma.model.score.out.weight.device.type
        config = config or adapt_config(kg.num_entities, minutes, steps).with_options(device=there)
        trainer = Trainer(
            config,
            [graph],
            run,
            model=copy.deepcopy(gamma.model),  # the caller's own must not change
            validate=validator({"own": watched}, config.validation_limit),
            watch=watch,
            provenance={**run_record([NamedGraph(graph, kg.fingerprint())]), "init": in_short(gamma.provenance)},
        )
        outcome = trainer.run(resume=resume)
        for watcher in watch:
            judging = f"judging by {len(parts.judged):,} other hidden facts, before and after"
            watcher({"kind": "event", "step": outcome.counters.step, "event": judging})
        best = load_checkpoint(weights_to_judge(run, outcome.counters, config))
        verdict = judge(gamma.model, best.build(), judged)
        made: dict[str, Any] = {
            **best.provenance,
            "adapted": {
                **describe_home(kg, name),
                "judged": verdict.to_dict(),
                **({"minutes": minutes} if steps is None else {"steps": steps}),
            },
        }
        adapted = Gamma(best.build(), made) if verdict.is_better else gamma
        path = None if folder is None else run.path / "adapted.safetensors"
        if path is not None:
            if verdict.is_better:
                save_checkpoint(path, adapted.model, made)
            else:
                path.unlink(missing_ok=True)
            write_text(run.path / "adapted.json", json.dumps(verdict.to_dict(), indent=1))
        count = outcome.counters
        return Adapted(
            adapted, verdict, outcome.status, count.step, count.seconds / 60, path if verdict.is_better else None
        )
