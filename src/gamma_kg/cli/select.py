"""gamma select: choose a checkpoint of a run by validation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.options import DeviceOption
from gamma_kg.cli.pretrain import DataDir


def select(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    datasets: Annotated[str, typer.Option(help="Benchmarks whose validation sets decide, with commas between.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Validation triples per benchmark.")] = 500,
    last: Annotated[int, typer.Option(min=0, help="Only the checkpoints of the last so many steps; 0: all.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Where the chosen one goes; RUN/selected.safetensors when not given.")
    ] = None,
    data_dir: DataDir = None,
    device: DeviceOption = "cpu",
) -> None:
    """Evaluate the saved checkpoints on validation sets and keep the best (VGCS). Test sets are not read."""
    from gamma_kg.io.output import check_file
    from gamma_kg.machine.device import choose_device
    from gamma_kg.machine.processes import join_processes
    from gamma_kg.training.run_folder import RunFolder
    from gamma_kg.training.select import Candidate, best_of, validate_checkpoints, write_selected
    from gamma_kg.training.validation import load_validation, validator

    with join_processes() as processes:
        if not processes.is_first:  # under torchrun one process chooses, and writes one result
            return
    there = choose_device(device)
    folder = RunFolder(run)
    names = [name.strip() for name in datasets.split(",") if name.strip()] or list(folder.config().validation)
    if not names:
        raise typer.BadParameter("this run watched no benchmarks: name some with --datasets")
    validate = validator(load_validation(names, data_dir), limit)

    def show(candidate: Candidate) -> None:
        sets = "  ".join(f"{name} {mrr:.4f}" for name, mrr in candidate.mrr.items())
        print(f"{candidate.path.name:32} mean {candidate.mean:.4f}  {sets}", flush=True)

    path = out or folder.path / "selected.safetensors"
    check_file(path)
    candidates = validate_checkpoints(folder, validate, last=last, device=there, on_candidate=show)
    write_selected(candidates, path, limit)
    print(f"chosen: {best_of(candidates).path.name} → {path}")
