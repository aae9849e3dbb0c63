"""Ranks to metrics: MR, MRR, Hits@k, adjusted mean rank index; means over graphs with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

HITS = (1, 3, 10)
METRICS = ("mrr", *(f"hits@{k}" for k in HITS), "mr")
BOOTSTRAP_DRAWS = 10_000


def rank_metrics(ranks: ArrayLike) -> dict[str, float]:
    """Mean rank, mean reciprocal rank and Hits@1/3/10 of ranks that start at 1."""
    rank = np.asarray(ranks, dtype=np.float64)
    if not len(rank):
        return {name: float("nan") for name in METRICS}
    metrics = {"mrr": float((1 / rank).mean())}
    metrics |= {f"hits@{k}": float((rank <= k).mean()) for k in HITS}
    return metrics | {"mr": float(rank.mean())}


def adjusted_mean_rank_index(fair_ranks: ArrayLike, rivals: ArrayLike) -> float:
    """1 for a perfect ranking, 0 for a random one: 1 − Σ(rank − 1) / Σ(expected rank − 1), ties shared.

    With n rivals the expected rank of a random ranking is 1 + n/2. Berrendorf et al., 2020.
    """
    expected = np.asarray(rivals, dtype=np.float64).sum() / 2
    beaten = (np.asarray(fair_ranks, dtype=np.float64) - 1).sum()
    return float(1 - beaten / expected) if expected else float("nan")


def bootstrap_interval(values: Sequence[float], *, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Percentile interval of the mean over graphs, drawing graphs with replacement; one graph gives no interval."""
    sample: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if len(sample) < 2:
        return float("nan"), float("nan")
    draws = np.random.default_rng(seed).integers(0, len(sample), size=(BOOTSTRAP_DRAWS, len(sample)))
    low, high = np.quantile(sample[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
