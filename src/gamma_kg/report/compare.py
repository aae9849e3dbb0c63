"""Two columns of per-graph figures against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gamma_kg.errors import DataError
from gamma_kg.evaluation.metrics import bootstrap_interval
from gamma_kg.evaluation.store import counts_of, read_arrays

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


@dataclass(frozen=True)
class QueryComparison:
    """First minus second over the same queries, every graph with the same weight; these very graphs, other queries."""

    graphs: int
    queries: int
    mean_difference: float
    interval: tuple[float, float]
    p_value: float


def compare_queries(first: Sequence[Path], second: Sequence[Path]) -> QueryComparison | None:
    """The graphs whose ranks both runs kept. None where there is none.

    The interval draws queries with replacement inside each graph. The test asks the same: the mean over graphs of the
    mean difference, against its standard error from the spread inside the graphs (two-sided, normal: many queries).
    """
    rng, draws, means, variances, total = np.random.default_rng(0), [], [], [], 0
    for one, other in zip(first, second, strict=True):
        difference = _difference(one, other)
        if difference is None or not len(difference):
            continue
        count = len(difference)
        total += count
        counts = rng.multinomial(count, np.full(count, 1 / count), size=QUERY_DRAWS)
        draws.append(counts @ difference / count)
        means.append(difference.mean())
        variances.append(difference.var(ddof=1) / count if count > 1 else 0.0)
    if not draws:
        return None
    low, high = np.quantile(np.mean(draws, axis=0), [0.025, 0.975])
    mean, error = float(np.mean(means)), float(np.sqrt(np.sum(variances)) / len(means))
    if error:
        p_value = float(2 * stats.norm.sf(abs(mean) / error))
    else:  # every query moved by the same amount, or none moved
        p_value = 1.0 if mean == 0 else 0.0
    return QueryComparison(len(means), total, mean, (float(low), float(high)), p_value)


def _difference(first: Path, second: Path) -> NDArray[np.float64] | None:
    """Reciprocal ranks of the same queries, first minus second."""
    if not first.is_file() or not second.is_file():
        return None
    one, other = read_arrays(first), read_arrays(second)
    if one is None or other is None:
        raise DataError(
            f"{first if one is None else second} is damaged; run `gamma evaluate` again to have it made anew"
        )
    if len(one["above"]) != len(other["above"]) or not np.array_equal(one["total"], other["total"]):
        return None  # other queries, or another filter
    ours, theirs = (counts_of(arrays).published_rank() for arrays in (one, other))
    return np.asarray(1 / ours - 1 / theirs, dtype=np.float64)


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
