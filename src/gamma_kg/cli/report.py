"""`gamma report`: results of `gamma evaluate` as tables and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folders: Annotated[list[Path], typer.Argument(help="The --out folders of `gamma evaluate`.")],
    format_name: Annotated[
        str | None, typer.Option("--format", "-f", help="terminal, markdown, csv, latex or html.")
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", "-o", help="Write here; .md, .csv, .tex or .html say the format. May be repeated."),
    ] = None,
    split: Annotated[str, typer.Option(help="test or valid.")] = "test",
) -> None:
    """The paper's tables from result files, beside published figures; several models are compared in pairs."""
    from gamma_kg.errors import ConfigError
    from gamma_kg.io.atomic import write_text
    from gamma_kg.report.render import SUFFIXES, render
    from gamma_kg.report.runs import load_runs

    runs = load_runs(folders, split)
    for path in out or ():
        chosen = format_name or SUFFIXES.get(path.suffix.lower())
        if chosen is None:
            raise ConfigError(f"can't tell the format of {path}: use one of {', '.join(SUFFIXES)}, or --format")
        write_text(path, render(runs, chosen))
        print(f"wrote {path}")
    if not out:
        print(render(runs, format_name or "terminal"), end="")
