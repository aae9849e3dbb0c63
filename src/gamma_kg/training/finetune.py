"""Fine-tuning: the same loop on one graph, from trained weights, with early stopping.

Comes in: a benchmark (its train graph, its own validation triples) or any file of triples (validation triples are
split off). Goes out: a run folder. Half of the validation triples say when to stop, the other half judge: the
weights in `finetuned.safetensors` are the new ones where the gain on these is beyond chance, else the old ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gamma_kg.data.benchmark import Split, load_benchmark
from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.sampling import IntArray, TrainingGraph
from gamma_kg.machine.processes import join_processes
from gamma_kg.nn.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from gamma_kg.nn.provenance import in_short
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.judgement import Verdict, judge
from gamma_kg.training.loop import Outcome, Trainer
from gamma_kg.training.recipes import (
    JUDGED_ROWS,
    ONE_GRAPH_RATE,
    WATCHED_ROWS,
    affordable,
    one_graph_phase,
    weights_to_judge,
)
from gamma_kg.training.run_folder import RunFolder
from gamma_kg.training.run_record import run_record
from gamma_kg.training.training_graphs import NamedGraph, hash_of, is_graph_file
from gamma_kg.training.validation import validator
from gamma_kg.training.watchers import watchers

VALIDATION_SHARE = 0.05
MOST_VALIDATION_TRIPLES = 500
RESULT = "finetuned.safetensors"


@dataclass(frozen=True, eq=False)
class Target:
    """What is fine-tuned on, and the validation triples: half of them are watched, the others judge."""

    training: NamedGraph
    validation: Split

    @property
    def watched(self) -> Split:
        return replace(self.validation, queries=self.validation.queries[::2])

    @property
    def judged(self) -> Split:
        return replace(self.validation, queries=self.validation.queries[1::2])


def finetune_config(target: Target) -> TrainConfig:
    """The recipe where the user gives none."""
    graph = target.training.graph
    assert isinstance(graph, TrainingGraph)  # `load_target` gives nothing else
    phase = one_graph_phase(graph.num_entities)
    watched = affordable(WATCHED_ROWS, target.validation.num_entities, MOST_VALIDATION_TRIPLES)
    return TrainConfig(
        graphs=(graph.name,),
        phases=(phase,),
        steps=1000,
        loss="softmax",
        learning_rate=ONE_GRAPH_RATE,
        warmup_steps=20,
        decay="linear",
        decay_share=0.5,
        ema_decay=0.98,
        validation=(graph.name,),
        validation_limit=watched,
        validate_steps=50,
        patience=5,
        keep=2,
        log_steps=5,
    )


def run_finetune(
    target: Target, start: Checkpoint, config: TrainConfig, out: str | Path, *, resume: bool = False
) -> tuple[Outcome, Verdict]:
    """Train from `start` on the target; everything lands in the folder `out`."""
    folder = RunFolder(out)
    with join_processes(config.device) as processes:
        name = target.training.graph.name
        made = {**run_record([target.training]), "init": in_short(start.provenance)}
        trainer = Trainer(
            config,
            [target.training.graph],
            folder,
            model=start.build(),
            validate=validator({name: target.watched}, config.validation_limit),
            watch=watchers(config, folder) if processes.is_first else (),
            processes=processes,
            provenance=made,
        )
        outcome = trainer.run(resume=resume)
        best = weights_to_judge(folder, outcome.counters, config)
        verdict = _keep_the_better(folder, start, best, target) if processes.is_first else None
        verdict = processes.from_first(verdict)
        assert verdict is not None
        return outcome, verdict


def _keep_the_better(folder: RunFolder, start: Checkpoint, weights: Path, target: Target) -> Verdict:
    best = load_checkpoint(weights)
    limit = affordable(JUDGED_ROWS, target.validation.num_entities, MOST_VALIDATION_TRIPLES)
    verdict = judge(start.build(), best.build(), target.judged, limit=limit)
    chosen = best if verdict.is_better else start
    judged = {"judged": verdict.to_dict(), "finetuned_on": target.training.graph.name}
    save_checkpoint(folder.path / RESULT, chosen.build(), {**chosen.provenance, **judged})
    return verdict


def load_target(name: str, data_dir: str | Path | None = None, seed: int = 0) -> Target:
    """A benchmark by name, a folder with train and valid files, a file of triples or a store."""
    path = Path(name).expanduser()
    if is_graph_file(name):
        kg = KnowledgeGraph.from_file(path)
        train, valid = split_off(np.unique(kg.triples.numpy(), axis=0), np.random.default_rng(seed))
        graph = TrainingGraph.build(path.stem, train, kg.num_entities, kg.num_relations)
        split = Split(train, valid, np.concatenate((train, valid)), kg.entities, kg.relations)
        return Target(NamedGraph(graph, hash_of(path, kg)), split)
    benchmark = load_benchmark(name, data_dir)
    train_split = benchmark.split("train")
    graph = TrainingGraph.build(benchmark.name, train_split.graph, train_split.num_entities, train_split.num_relations)
    return Target(NamedGraph(graph, benchmark.data_hash("train")), benchmark.split("valid"))


def split_off(triples: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """(train, validation): some facts are set aside whose ends and relation occur in others too."""
    ends = np.bincount(triples[:, [0, 2]].ravel())
    relations = np.bincount(triples[:, 1])
    is_spare = (ends[triples[:, 0]] > 1) & (ends[triples[:, 2]] > 1) & (relations[triples[:, 1]] > 1)
    spare = np.flatnonzero(is_spare)
    count = min(MOST_VALIDATION_TRIPLES, round(VALIDATION_SHARE * len(triples)) or 1, len(spare) // 2)
    if count < 1:
        raise DataError(
            f"a graph of {len(triples)} triples is too small or too sparse to set validation triples aside; "
            "give a folder with train and valid files instead"
        )
    chosen = np.zeros(len(triples), dtype=bool)
    chosen[rng.choice(spare, size=count, replace=False)] = True
    return triples[~chosen], triples[chosen]
