"""gamma ablate: train variants under one budget and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.pretrain import DataDir, SetOption, TrainingDevice, changes_of


def ablate(
    plan: Annotated[str, typer.Argument(help="A TOML file, or the name of a shipped one: ablate-fusion-mechanism, …")],
    set_: SetOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; runs/<name of the plan> when not given.")
    ] = None,
    data_dir: DataDir = None,
    device: TrainingDevice = None,
) -> None:
    """Train a list of variants with equal budget, evaluate them and write the table. Start again to go on."""
    from gamma_kg.training.ablation import read_plan, run_ablation

    chosen = read_plan(plan, changes_of(set_, device))
    table = run_ablation(chosen, out or Path("runs") / Path(plan).stem, data_dir=data_dir)
    print(table)
