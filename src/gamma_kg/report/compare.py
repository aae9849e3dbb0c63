"""Two columns of per-graph figures against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gamma_kg.evaluation.metrics import bootstrap_interval

# Published figures have three decimals: closer than half of the last one is a tie.
TIE = 0.0005
QUERY_DRAWS = 1_000


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


def compare_queries(first: Sequence[Path], second: Sequence[Path]) -> tuple[int, tuple[float, float]] | None:
    """Queries of the graphs whose ranks both runs kept, and the interval of the mean difference of MRR over graphs.

    Queries are drawn with replacement inside each graph: how far another sample of queries would move the mean, for
    these very graphs. None where no graph has both.
    """
    rng, draws, total = np.random.default_rng(0), [], 0
    for one, other in zip(first, second, strict=True):
        difference = _difference(one, other)
        if difference is not None and len(difference):
            total += len(difference)
            counts = rng.multinomial(len(difference), np.full(len(difference), 1 / len(difference)), size=QUERY_DRAWS)
            draws.append(counts @ difference / len(difference))
    if not draws:
        return None
    low, high = np.quantile(np.mean(draws, axis=0), [0.025, 0.975])
    return total, (float(low), float(high))


def _difference(first: Path, second: Path) -> NDArray[np.float64] | None:
    """Reciprocal ranks of the same queries, first minus second."""
    if not first.is_file() or not second.is_file():
        return None
    with np.load(first) as one, np.load(second) as other:
        if len(one["above"]) != len(other["above"]) or not np.array_equal(one["total"], other["total"]):
            return None  # other queries, or another filter
        ranks = [1 + arrays["above"] + arrays["tied"] for arrays in (one, other)]
    return np.asarray(1 / ranks[0] - 1 / ranks[1], dtype=np.float64)


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
