"""How far a run is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Counters:
    """How far a run is; saved and restored with it."""

    step: int = 0
    batches: int = 0
    samples: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    best_mrr: float = -1.0
    best_step: int = -1
    validations_since_best: int = 0
    validated_at: float = 0.0
    saved_at: float = 0.0
    # Sums over the batches since the last line of the log.
    loss_sum: float = 0.0
    entropy_sum: float = 0.0
    batches_summed: int = 0


@dataclass
class Outcome:
    """How a run ended: "finished", "stopped" by a signal, or "converged" by early stopping."""

    status: str
    counters: Counters
    validations: list[dict[str, Any]] = field(default_factory=list)
