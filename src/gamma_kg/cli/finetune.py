"""gamma finetune: adapt a model to one graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.pretrain import DataDir, SetOption, TrainingDevice, changes_of


def finetune(
    target: Annotated[
        str, typer.Argument(help="A benchmark, a folder with train and valid files, or a file of triples.")
    ],
    model: Annotated[
        Path | None,
        typer.Option(help="Weights to start from (.safetensors, ULTRA's .pth); the bundled ones if not given."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with other options than the usual ones.")] = None,
    set_: SetOption = None,
    minutes: Annotated[float | None, typer.Option(help="Budget by the clock.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/finetune-<target> when not given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, exactly.")] = False,
    data_dir: DataDir = None,
    device: TrainingDevice = None,
) -> None:
    """Train on one graph until its validation no longer improves; kept if better. Result: OUT/finetuned.safetensors."""
    from gamma_kg.predicting.weights import load_one
    from gamma_kg.training.config import TrainConfig, read_config, set_option
    from gamma_kg.training.finetune import RESULT, finetune_config, load_target, run_finetune

    changes = changes_of(set_, device)
    goal = load_target(target, data_dir)
    start = load_one(model)
    if config is not None:
        options = read_config(config).model_dump(mode="json")
    else:
        options = finetune_config(goal).model_dump(mode="json")
    name = goal.training.graph.name
    options |= {"graphs": [name], "validation": [name]}
    if minutes is not None:
        options |= {"minutes": minutes, "steps": None}
    for change in changes:
        set_option(options, change)
    folder = out or Path("runs") / f"finetune-{name}"
    outcome, verdict = run_finetune(goal, start, TrainConfig.parse(options), folder, resume=resume)
    print(f"{outcome.status} at step {outcome.counters.step:,}: {verdict}")
    print(f"weights: {folder / RESULT}")
