"""Two columns of per-graph figures against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from gamma_kg.evaluation.metrics import bootstrap_interval

# Published figures have three decimals: closer than half of the last one is a tie.
TIE = 0.0005


@dataclass(frozen=True)
class Comparison:
    """First minus second over the same graphs; `p_value` of the two-sided Wilcoxon signed-rank test."""

    graphs: int
    wins: int
    ties: int
    losses: int
    mean_difference: float
    interval: tuple[float, float]
    p_value: float


def compare(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Wins, ties and losses of the first, the mean difference with a bootstrap interval, and Wilcoxon's test."""
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    moved = difference[np.abs(difference) > 0]
    p_value = float(stats.wilcoxon(moved).pvalue) if len(moved) else 1.0
    tied = np.abs(difference) < TIE
    return Comparison(
        graphs=len(difference),
        wins=int(((difference > 0) & ~tied).sum()),
        ties=int(tied.sum()),
        losses=int(((difference < 0) & ~tied).sum()),
        mean_difference=float(difference.mean()) if len(difference) else float("nan"),
        interval=bootstrap_interval(difference.tolist()),
        p_value=p_value,
    )
