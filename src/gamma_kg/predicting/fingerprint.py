"""What must be the same for a stopped run to be taken up again: graph, model, and whether probabilities are fitted."""

from __future__ import annotations

from typing import Any

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predicting.predictor import Predictor


def run_fingerprint(model: Predictor, kg: KnowledgeGraph, **options: Any) -> dict[str, Any]:
    """The parts that decide a run's answers, by name; further `options` of the run are added."""
    return {
        "graph": kg.fingerprint(),
        "model": model.fingerprint(),
        "is_calibrated": model.calibration(kg) is not None,
        **options,
    }
