"""`gamma average`: the mean of the weights of several checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def average(
    models: Annotated[list[str], typer.Argument(help="Checkpoints, or names such as gamma-1, of runs with one start.")],
    out: Annotated[Path, typer.Option(help="The .safetensors file to write.")],
    shares: Annotated[
        list[float] | None, typer.Option("--share", help="How much each counts, in their order; equally if left out.")
    ] = None,
) -> None:
    """One model with the mean of the weights of several. Useful for runs that began from the same weights."""
    from gamma_kg.io.output import check_file
    from gamma_kg.nn.averaging import average as mean
    from gamma_kg.nn.checkpoint import save_checkpoint
    from gamma_kg.predicting.weights import load_one

    check_file(out, models)
    found = mean([load_one(name) for name in models], shares or None)
    model = found.build()
    save_checkpoint(out, model, found.provenance)
    print(f"{out}: {model.num_parameters:,} parameters, the mean of {len(models)} checkpoints")
