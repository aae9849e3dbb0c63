"""Fitting probabilities before a command goes on, with progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from gamma_kg.cli.progress_bar import progress_bar
from gamma_kg.cli.saying import say

if TYPE_CHECKING:
    from gamma_kg import KnowledgeGraph
    from gamma_kg.predicting.predictor import Predictor


def fit(gamma: Predictor, kg: KnowledgeGraph, local: str, rules: bool, seconds: float | None) -> None:
    """Fits probabilities to the graph, and says so before and after."""
    from gamma_kg.errors import DataError

    say("fitting probabilities to this graph; they are kept for later")
    try:
        with progress_bar("fitting probabilities", "queries", seconds) as progress:
            say(f"{gamma.calibrate(kg, local=local, rules=rules, budget_seconds=seconds, progress=progress)}")
    except DataError as error:
        say(f"probabilities stay as they are: {error}")
    except KeyboardInterrupt:
        say("stopped while fitting probabilities, nothing was asked yet; --no-calibrate does without")
        raise typer.Exit(130) from None
