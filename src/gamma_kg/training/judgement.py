"""Is the trained model really better on this graph? Decided by facts that neither training nor stopping has seen.

Both models rank the same hidden facts in both directions. A gain counts where its bootstrap interval, drawn over the
facts, lies above zero; else the old weights stay. Training may do harm, so nothing changes on a hunch: of twenty
trained models that are no better than the old one, one passes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gamma_kg.data.benchmark import Split
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.metrics import bootstrap_interval
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.nn.model import GammaModel
from gamma_kg.predicting.gamma import Gamma

# One in twenty at the lower end, the only one that decides.
LEVEL = 0.9


@dataclass(frozen=True)
class Verdict:
    """MRR (fair rank) before and after on the hidden facts, and the interval of the gain."""

    before: float
    after: float
    low: float
    high: float
    facts: int

    @property
    def gain(self) -> float:
        return self.after - self.before

    @property
    def is_better(self) -> bool:
        return self.low > 0

    def __str__(self) -> str:
        kept = "the new weights are better" if self.is_better else "no gain beyond chance: the old weights stay"
        return (
            f"MRR {self.before:.4f} → {self.after:.4f} on {self.facts:,} hidden facts, "
            f"gain {self.gain:+.4f} ({self.low:+.4f} to {self.high:+.4f}): {kept}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "gain": self.gain, "is_better": self.is_better}


def judge(before: GammaModel, after: GammaModel, split: Split, *, limit: int | None = None, seed: int = 1) -> Verdict:
    """Both models on the split's triples, or `limit` of them; the two directions of a triple count as one draw."""
    plan = QueryPlan.build(split, limit=limit, seed=seed)
    old, new = (1 / rank_split(Gamma(model), split, plan).fair_rank() for model in (before, after))
    _, which = np.unique(plan.triple, return_inverse=True)
    per_triple = np.bincount(which, new - old) / np.bincount(which)
    low, high = bootstrap_interval(per_triple.tolist(), level=LEVEL)
    # One fact gives no interval, and so no reason to change anything.
    low, high = (-1.0, 1.0) if np.isnan(low) else (low, high)
    return Verdict(float(old.mean()), float(new.mean()), low, high, len(per_triple))
