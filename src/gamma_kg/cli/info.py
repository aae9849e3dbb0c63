"""`gamma info`: on one screen what is installed, what computes, and which model it is; everything else by --json."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from gamma_kg.io.shown import few


def info(
    model: Annotated[Path | None, typer.Argument(help="A checkpoint file; the bundled weights if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that is known, as one JSON object.")] = False,
) -> None:
    """Version, engine, threads, and the model: what it is, what it was trained on, how good it is."""
    facts = collect(model)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    print(f"gamma-kg {facts['gamma-kg']}, Python {facts['python']}, torch {facts['torch']}")
    print(f"engine   {facts['engine']}; {facts['threads']} thread{'' if facts['threads'] == 1 else 's'}")
    print(f"model    {facts['model']}: {' & '.join(facts['config']['branches'])}, {facts['parameters']:,} parameters")
    print(f"trained  {trained_on(facts['provenance'])}")
    print(f"quality  {quality(facts['provenance'])}")


def collect(model: Path | None) -> dict[str, Any]:
    """All facts."""
    import torch

    from gamma_kg import Gamma
    from gamma_kg.kernels.native import describe

    gamma = Gamma.from_pretrained(model)
    return {
        "gamma-kg": version("gamma-kg"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "engine": describe(),
        "threads": torch.get_num_threads(),
        "model": str(model) if model else "bundled weights",
        "parameters": gamma.num_parameters,
        "config": gamma.config.model_dump(mode="json"),
        "provenance": gamma.provenance,
    }


def trained_on(provenance: Mapping[str, Any]) -> str:
    """The graphs that the weights have seen, and for how long."""
    from gamma_kg.nn.provenance import graphs_behind, origin_of, runs_behind

    names = [name.removesuffix(".txt") for name in graphs_behind(provenance)]
    if not names:
        return origin_of(provenance) or "not recorded"
    graphs = few(names, 4)
    runs = runs_behind(provenance)
    minutes = sum(float(run.get("minutes", 0)) for run in runs)
    hardware = next((run["hardware"] for run in runs if "hardware" in run), "unknown hardware")
    return f"{graphs}; {minutes:.0f} minutes on {hardware}" if minutes else graphs


def quality(provenance: Mapping[str, Any]) -> str:
    """How the weights were chosen, and the figure that chose them."""
    chosen = provenance.get("selection")
    if not chosen:
        return "not recorded: see docs/RESULTS.md, or measure it with gamma evaluate"
    mean = chosen.get("mean")
    figure = f"mean validation MRR {mean:.3f}" if isinstance(mean, float) else "validation MRR"
    return f"chosen by {figure} over {len(chosen.get('validation_mrr', {}))} graphs; tables: docs/RESULTS.md"
