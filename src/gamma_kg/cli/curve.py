"""gamma curve: draw how a run went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def curve(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[
        Path | None, typer.Option(help="A .html, .svg or .png file; RUN/curves.html when not given.")
    ] = None,
) -> None:
    """Draw loss and validation curves of a run."""
    from gamma_kg.training.curve import write_curves
    from gamma_kg.training.run_folder import RunFolder

    path = out or run / "curves.html"
    write_curves(RunFolder(run), path)
    print(path)
