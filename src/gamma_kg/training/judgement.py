"""Is the trained model really better on this graph? Decided by facts that neither training nor stopping has seen.

Both models rank the same hidden facts in both directions. A gain counts where its bootstrap interval, drawn over the
facts, lies above zero; else the old weights stay. Training may do harm, so nothing changes on a hunch: of twenty
trained models that are no better than the old one, one passes.

Nor may what is learnt of one kind of facts be paid for by another kind: facts that have a twin in the graph, another
fact about the same two, and facts that have none. What is missing may be all of one kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.benchmark import Split
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.metrics import bootstrap_interval
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.linked import are_beside
from gamma_kg.nn.model import GammaModel
from gamma_kg.predicting.gamma import Gamma

# One in twenty at the lower end, the only one that decides.
LEVEL = 0.9
# What a kind of facts may lose, as a mean of its facts, and how many of a kind have a say.
TOLERATED = 0.003
FEWEST_OF_A_KIND = 20


@dataclass(frozen=True)
class Kind:
    """The gain of the hidden facts of one kind."""

    gain: float
    facts: int

    @property
    def loses(self) -> bool:
        return self.facts >= FEWEST_OF_A_KIND and self.gain < -TOLERATED


@dataclass(frozen=True)
class Verdict:
    """MRR (fair rank) before and after on the hidden facts, and the interval of the gain; the gain of each kind."""

    before: float
    after: float
    low: float
    high: float
    facts: int
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def gain(self) -> float:
        return self.after - self.before

    @property
    def is_better(self) -> bool:
        return self.low > 0 and not self._losing

    @property
    def _losing(self) -> list[str]:
        return [f"{name} lose ({kind.gain:+.4f})" for name, kind in self.kinds.items() if kind.loses]

    def __str__(self) -> str:
        if self.is_better:
            kept = "the new weights are better"
        else:
            because = f"but {', '.join(self._losing)}" if self.low > 0 else "no gain beyond chance"
            kept = f"{because}: the old weights stay"
        of_kinds = "".join(f"; {kind.facts:,} {name} {kind.gain:+.4f}" for name, kind in self.kinds.items())
        return (
            f"MRR {self.before:.4f} → {self.after:.4f} on {self.facts:,} hidden facts, "
            f"gain {self.gain:+.4f} ({self.low:+.4f} to {self.high:+.4f}{of_kinds}): {kept}"
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
    return Verdict(float(old.mean()), float(new.mean()), low, high, len(per_triple), _by_kind(split, plan, new - old))


def _by_kind(split: Split, plan: QueryPlan, gain: NDArray[np.float64]) -> dict[str, Kind]:
    edges = Edges.of_triples(split.graph, split.num_entities, split.num_relations)
    has_twin = are_beside(edges, plan.source, plan.answer)
    kinds = {"facts with a twin": has_twin, "facts without a twin": ~has_twin}
    return {name: Kind(float(gain[of].mean()), int(of.sum()) // 2) for name, of in kinds.items() if of.any()}
