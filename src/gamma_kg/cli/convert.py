"""`gamma convert`: public ULTRA weights → a checkpoint of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def convert(
    source: Annotated[Path, typer.Argument(help="A public ULTRA checkpoint (.pth).")],
    target: Annotated[Path, typer.Argument(help="The .safetensors file to write.")],
) -> None:
    """Import a public ULTRA checkpoint. Only weights are read; nothing in the file is executed."""
    from gamma_kg.nn.checkpoint import import_ultra, save_checkpoint

    checkpoint = import_ultra(source)
    model = checkpoint.build()
    save_checkpoint(target, model, checkpoint.provenance)
    print(f"{target}: {model.num_parameters:,} parameters, {' & '.join(checkpoint.config.branches)}")
