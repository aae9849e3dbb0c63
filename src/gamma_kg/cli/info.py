"""`gamma info`: versions, the model, and which propagation path is in use."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer


def info(
    model: Annotated[Path | None, typer.Argument(help="A checkpoint file; the bundled weights if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Versions, parameters, config, which propagation path is in use and how many threads."""
    facts = collect(model)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        shown = "\n".join(f"{k} = {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
        table.add_row(f"[bold]{name}[/bold]", escape(shown))
    Console().print(table)


def collect(model: Path | None) -> dict[str, Any]:
    """All facts, in the order they are shown."""
    import torch

    from gamma_kg import Gamma
    from gamma_kg.kernels.native import describe

    gamma = Gamma.from_pretrained(model)
    return {
        "gamma-kg": version("gamma-kg"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "propagation": describe(),
        "threads": torch.get_num_threads(),
        "model": str(model) if model else "bundled weights",
        "parameters": gamma.num_parameters,
        "config": gamma.config.model_dump(mode="json"),
        "provenance": gamma.provenance,
    }
