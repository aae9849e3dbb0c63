"""What must be the same for a stopped run to be taken up again: graph, model, and how probabilities were fitted."""

from __future__ import annotations

from typing import Any

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.predicting.switch import Local


def run_fingerprint(
    model: Predictor, kg: KnowledgeGraph, local: Local, rules: bool = True, **options: Any
) -> dict[str, Any]:
    """The parts that decide a run's answers, by name; further `options` of the run are added."""
    calibration = model.calibration(kg, local, rules)
    return {
        "graph": kg.fingerprint(),
        "model": model.fingerprint(),
        "local": model.triples(kg, local),
        "rules": rules,
        "calibration": None if calibration is None else calibration.digest(),
        **options,
    }
