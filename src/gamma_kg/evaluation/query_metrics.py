"""Metrics of answered queries: filtered ranks of the hard answers, per shape and in means; the error of cardinality.

Each hard answer is ranked among the entities that are no answers. A query counts once: its value is the mean over its
answers; a shape's is the mean over its queries; EPFO (no negation) and negation are means over shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gamma_kg.evaluation.ranking import count_rivals
from gamma_kg.logic.lists import NEGATED, POSITIVE
from gamma_kg.logic.sample import LogicalQuery

METRICS = ("mrr", "fair_mrr", "hits@10")
# An entity counts as given for an answer from this degree on.
ANSWER = 0.5


@dataclass(frozen=True)
class QueryScore:
    """How one query was answered."""

    shape: str
    mrr: float  # a tie counts against the model, as in the published tables
    fair_mrr: float  # a tie is shared
    hits_at_10: float
    cardinality_error: float  # |entities given as answers − answers| / answers

    def value(self, metric: str) -> float:
        return float(getattr(self, metric.replace("@", "_at_")))


def score_query(query: LogicalQuery, member_N: Tensor) -> QueryScore:
    """Rank the answers that are measured; those must be there."""
    if not bool(member_N.isfinite().all()):
        raise ValueError("memberships must be finite: a diverged model would otherwise rank first")
    answers = torch.from_numpy(np.union1d(query.easy, query.hard))
    ranked = torch.from_numpy(query.ranked)
    zeros = torch.zeros_like
    rivals = count_rivals(member_N[None], zeros(ranked), ranked, zeros(answers), answers)
    published, fair = rivals.published_rank(), rivals.fair_rank()
    given = int((member_N > ANSWER).sum())
    return QueryScore(
        query.shape,
        float((1 / published).mean()),
        float((1 / fair).mean()),
        float((published <= 10).mean()),
        abs(given - len(answers)) / len(answers),
    )


def summary(scores: Sequence[QueryScore]) -> dict[str, dict[str, float]]:
    """Per shape, and as "epfo" and "negation" the means over shapes: metrics and the number of queries."""
    found: dict[str, dict[str, float]] = {}
    shapes = [*POSITIVE, *NEGATED, *sorted({score.shape for score in scores} - {*POSITIVE, *NEGATED})]
    names = (*METRICS, "cardinality_error")
    for shape in shapes:
        members = [score for score in scores if score.shape == shape]
        if members:
            row = {name: float(np.mean([score.value(name) for score in members])) for name in names}
            found[shape] = {**row, "queries": len(members)}
    for group, of in (("epfo", POSITIVE), ("negation", NEGATED)):
        rows = [found[shape] for shape in of if shape in found]
        if rows:
            found[group] = _mean(rows, names)
    return found


def _mean(rows: Iterable[Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    rows = list(rows)
    mean = {name: float(np.mean([row[name] for row in rows])) for name in names}
    return {**mean, "queries": sum(row["queries"] for row in rows)}
