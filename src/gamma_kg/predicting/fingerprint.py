"""What must be the same for a stopped run to be taken up again: graph, model, and how probabilities were fitted."""

from __future__ import annotations

from typing import Any

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.predictor import Predictor


def run_fingerprint(model: Predictor, kg: KnowledgeGraph, how: AnswerOptions, **more: Any) -> dict[str, Any]:
    """The parts that decide a run's answers, by name, and what `more` decides them."""
    calibration = model.calibration(kg, how.local, how.rules)
    return {
        "graph": kg.fingerprint(),
        "model": model.fingerprint(),
        "local": model.triples(kg, how.local),
        "rules": how.rules,
        "calibration": None if calibration is None else calibration.digest(),
        **more,
    }
