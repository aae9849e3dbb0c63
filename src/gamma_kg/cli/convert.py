"""`gamma convert`: public ULTRA weights → a checkpoint of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
    weights: Annotated[Path, typer.Argument(help="A public ULTRA checkpoint (.pth).")],
    out: Annotated[Path, typer.Argument(help="The .safetensors file to write.")],
) -> None:
    """Import a public ULTRA checkpoint. Only weights are read; nothing in the file is executed."""
    from gamma_kg.io.output import check_file
    from gamma_kg.nn.checkpoint import import_ultra, save_checkpoint

    check_file(out, (weights,))
    checkpoint = import_ultra(weights)
    model = checkpoint.build()
    save_checkpoint(out, model, checkpoint.provenance)
    print(f"{out}: {model.num_parameters:,} parameters, {' & '.join(checkpoint.config.branches)}")
