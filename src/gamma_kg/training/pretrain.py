"""A run from its config: load the graphs, build the model, watch, train."""

from __future__ import annotations

from pathlib import Path

from gamma_kg.errors import ConfigError
from gamma_kg.machine.processes import join_processes
from gamma_kg.nn.checkpoint import Checkpoint
from gamma_kg.nn.joining import join
from gamma_kg.nn.provenance import in_short
from gamma_kg.predicting.weights import load_one
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.loop import Outcome, Trainer
from gamma_kg.training.objective import Teacher
from gamma_kg.training.run_folder import RunFolder
from gamma_kg.training.run_record import run_record
from gamma_kg.training.training_graphs import load_graphs
from gamma_kg.training.validation import load_validation, validator
from gamma_kg.training.watchers import watchers


def run_config(
    config: TrainConfig, out: str | Path, *, resume: bool = False, data_dir: str | Path | None = None
) -> Outcome:
    """Train as the config says; everything lands in the folder `out`."""
    folder = RunFolder(out)
    with join_processes(config.device) as processes:
        graphs = load_graphs(config.graphs, data_dir)
        splits = load_validation(config.validation, data_dir) if processes.is_first else {}
        validate = validator(splits, config.validation_limit) if config.validation else None
        described = run_record(graphs)
        start = initial_checkpoint(config)
        if start is not None:
            described["init"] = in_short(start.provenance)
        if config.teachers:
            described["teachers"] = [in_short(load_one(name).provenance) for name in config.teachers]
        reads = (config.gamma_config if start is None else start.config).relation_graph
        trainer = Trainer(
            config,
            [named.graph for named in graphs],
            folder,
            model=None if start is None else start.build(),
            teachers=load_teachers(config, reads),
            validate=validate,
            watch=watchers(config, folder) if processes.is_first else (),
            processes=processes,
            provenance=described,
        )
        return trainer.run(resume=resume)


def initial_checkpoint(config: TrainConfig) -> Checkpoint | None:
    """The weights that the config starts from, those of several names joined to one model; None for random ones."""
    init = config.init
    if init is None:
        return None
    checkpoint = load_one(init) if isinstance(init, str) else join([load_one(name) for name in init])
    if config.model_options or config.model != "gamma":
        wanted = config.gamma_config
        if wanted.relation_graph == "pairs":
            checkpoint = checkpoint.with_pairs()
        if wanted != checkpoint.config:
            raise ConfigError(f"init: {init} holds another model than the config asks for ({config.model})")
    return checkpoint


def load_teachers(config: TrainConfig, wanted: str) -> list[Teacher]:
    """The models that are imitated; `wanted` is the kind of graph of relations that the model reads, and so they."""
    teachers = []
    for name in config.teachers:
        checkpoint = load_one(name).with_pairs() if wanted == "pairs" else load_one(name)
        if checkpoint.config.relation_graph != wanted:
            raise ConfigError(
                f"teachers: {name} reads the graph of relations {checkpoint.config.relation_graph!r}, "
                f"the model {wanted!r}: add model_options.relation_graph={checkpoint.config.relation_graph!r}"
            )
        teachers.append(Teacher(checkpoint.build(), name in config.whole_teachers))
    return teachers
