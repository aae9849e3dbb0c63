"""gamma pretrain: train a model from a config file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Change an option: key=value, also phases.0.key=value.")
]
TrainingDevice = Annotated[
    str | None, typer.Option("--device", help="What computes: cpu, cuda, or auto (a GPU where there is one).")
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder with one sub-folder per benchmark.")]


def pretrain(
    config: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a shipped one: paper, gamma-1, ten-minutes.")
    ],
    set_: SetOption = None,
    minutes: Annotated[float | None, typer.Option(help="Budget by the clock; schedules follow it.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; runs/<name of the config> when not given.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, exactly.")] = False,
    data_dir: DataDir = None,
    device: TrainingDevice = None,
) -> None:
    """Train a model from scratch (or from `init`), in one process or under torchrun."""
    from gamma_kg.training.config import read_config
    from gamma_kg.training.pretrain import run_config

    changes = changes_of(set_, device)
    if minutes is not None:
        changes += [f"minutes={minutes}"]
    options = read_config(config, changes)
    if minutes is not None:
        options = options.with_options(steps=None)
    run_config(options, out or Path("runs") / Path(config).stem, resume=resume, data_dir=data_dir)


def changes_of(given: list[str] | None, device: str | None) -> list[str]:
    """The changes of a config; a device that is not here is told before anything is loaded."""
    from gamma_kg.machine.device import choose_device

    if device is None:
        return list(given or [])
    choose_device(device)
    return [*(given or []), f"device={device}"]
