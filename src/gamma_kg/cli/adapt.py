"""gamma adapt: five minutes of training on one graph, from the graph itself, kept only where it helps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.pretrain import TrainingDevice
from gamma_kg.cli.reading import GraphArgument, Reading, reads_graph


@reads_graph
def adapt(
    graph: GraphArgument,
    reading: Reading,
    minutes: Annotated[float, typer.Option(min=0.001, help="Time to train for; judging comes on top.")] = 5.0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps to train for instead of minutes: the same result every time.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Weights to start from; else the bundled.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/adapt-<graph> when not given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    device: TrainingDevice = "auto",
) -> None:
    """Train on a graph's own facts and keep the weights only if facts hidden from it then rank higher, beyond chance.

    Ctrl-C ends training and judges the best so far. Result: OUT/adapted.safetensors, for --model.
    """
    from gamma_kg.errors import ConfigError
    from gamma_kg.predicting.gamma import Gamma
    from gamma_kg.predicting.models import resolve_model
    from gamma_kg.training.adapt import adapt as run
    from gamma_kg.training.watchers import LiveLine

    gamma = resolve_model(model, device or "auto").predictor
    if not isinstance(gamma, Gamma):
        raise ConfigError(f"{model} has no weights that could learn; name a checkpoint")
    kg = reading.graph(graph)
    name = Path(graph).stem
    folder = out or Path("runs") / f"adapt-{name}"
    done = run(gamma, kg, minutes=minutes, steps=steps, folder=folder, resume=resume, name=name, watch=[LiveLine()])
    print(done)
    print(f"weights: {done.path}" if done.path else "weights: unchanged")
