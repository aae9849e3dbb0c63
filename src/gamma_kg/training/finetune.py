"""Fine-tuning: the same loop on one graph, from trained weights, with early stopping.

Comes in: a benchmark (its train graph, its own validation triples) or any file of triples (validation triples are
split off). Goes out: a run folder; `best.safetensors` in it never validates worse than the weights it started from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gamma_kg.data.benchmark import Split, file_sha256, load_benchmark
from gamma_kg.data.catalog import catalog
from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError
from gamma_kg.graph.sampling import IntArray, SourceGraph
from gamma_kg.machine.processes import join_processes
from gamma_kg.nn.checkpoint import Checkpoint, import_ultra, load_checkpoint
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.training.config import Stage, TrainConfig
from gamma_kg.training.loop import Outcome, Trainer
from gamma_kg.training.progress import watchers
from gamma_kg.training.run_folder import RunFolder
from gamma_kg.training.sources import NamedSource, provenance
from gamma_kg.training.validation import validator

# A graph with more triples is trained on in pieces, so that a step stays cheap on a CPU.
WHOLE_UP_TO = 20_000
VALIDATION_SHARE = 0.05
MOST_VALIDATION_TRIPLES = 500


@dataclass(frozen=True, eq=False)
class Target:
    """What is fine-tuned on, and what is watched."""

    source: NamedSource
    validation: Split


def finetune_config(target: Target) -> TrainConfig:
    """The recipe where the user gives none."""
    whole = target.source.graph.num_triples <= WHOLE_UP_TO
    sampling = (
        {"sampler": "full"} if whole else {"sampler": "subgraph", "entities": (1000, 6000), "max_triples": 60_000}
    )
    stage = Stage.parse({**sampling, "batch_size": 16, "negatives": 512, "max_answers": 2, "drop_chance": 0.0})
    return TrainConfig(
        sources=(target.source.graph.name,),
        stages=(stage,),
        steps=1000,
        loss="softmax",
        learning_rate=2e-4,
        warmup_steps=20,
        decay="linear",
        decay_share=0.5,
        ema_decay=0.98,
        validation=(target.source.graph.name,),
        validation_limit=MOST_VALIDATION_TRIPLES,
        validate_steps=50,
        patience=5,
        keep=2,
        log_steps=5,
    )


def run_finetune(
    target: Target, start: Checkpoint, config: TrainConfig, out: str | Path, *, resume: bool = False
) -> Outcome:
    """Train from `start` on the target; everything lands in the folder `out`."""
    folder = RunFolder(out)
    with join_processes(config.device) as processes:
        name = target.source.graph.name
        made = {**provenance([target.source]), "init": start.provenance}
        trainer = Trainer(
            config,
            [target.source.graph],
            folder,
            model=start.build(),
            validate=validator({name: target.validation}, config.validation_limit),
            watch=watchers(config, folder) if processes.is_first else (),
            processes=processes,
            provenance=made,
        )
        return trainer.run(resume=resume)


def load_target(name: str, data_dir: str | Path | None = None, seed: int = 0) -> Target:
    """A benchmark by name, a folder with train and valid files, or a file of triples."""
    path = Path(name).expanduser()
    if name.casefold() not in catalog() and path.is_file():
        table = read_triples(path)
        train, valid = split_off(np.unique(table.triples, axis=0), np.random.default_rng(seed))
        source = SourceGraph.build(path.stem, train, len(table.entities), len(table.relations))
        split = Split(train, valid, np.concatenate((train, valid)), table.entities, table.relations)
        return Target(NamedSource(source, file_sha256(path)), split)
    benchmark = load_benchmark(name, data_dir)
    train_split = benchmark.split("train")
    source = SourceGraph.build(benchmark.name, train_split.graph, train_split.num_entities, train_split.num_relations)
    return Target(NamedSource(source, benchmark.data_hash("train")), benchmark.split("valid"))


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


def load_start(model: str | Path | None) -> Checkpoint:
    """The weights to start from: the bundled ones, a .safetensors checkpoint or a public ULTRA .pth."""
    if model is None:
        gamma = Gamma.from_pretrained()
        return Checkpoint(gamma.config, gamma.model.state_dict(), gamma.provenance)
    return import_ultra(model) if Path(model).suffix in (".pth", ".pt") else load_checkpoint(model)
