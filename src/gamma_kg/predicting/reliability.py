"""From proposals and whether they were right to a `Calibration`: the maps, and how well they hold on the other half."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gamma_kg.predicting.calibration import Calibration, FloatArray, MonotoneMap, ReliabilityBin
from gamma_kg.predicting.odds import from_log_odds

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BINS = 15
MIN_RELATION_QUERIES = 40
# A relation's own map starts from the graph's map as if that had been seen this often in every bin.
PRIOR_WEIGHT = 20.0
TABLE_EDGES = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class JudgedProposals:
    """Answers to queries on a graph from which facts were hidden, a row each."""

    query: IntArray
    relation: IntArray
    odds: FloatArray  # plain log-odds of the fact
    is_true: BoolArray  # it is one of the hidden facts
    weight: FloatArray  # how much it counts

    def __getitem__(self, chosen: BoolArray) -> JudgedProposals:
        return JudgedProposals(*(column[chosen] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: Sequence[JudgedProposals]) -> JudgedProposals:
        return cls(*(np.concatenate(column) for column in zip(*(vars(part).values() for part in parts), strict=True)))


def fit_calibration(rows: JudgedProposals, rng: np.random.Generator) -> Calibration:
    """Maps fitted to all rows; what they are worth is judged by maps fitted to the other half of the queries. Where
    these do worse than the plain odds, as a handful of hidden facts may, the plain odds stay."""
    half = rng.permutation(int(rows.query.max()) + 1)[rows.query] % 2 == 0
    judged = [rows[~half], rows[half]]
    after = np.concatenate([_judge(rows[half], judged[0]), _judge(rows[~half], judged[1])])
    truth = np.concatenate([part.is_true for part in judged])
    weight = np.concatenate([part.weight for part in judged])
    plain = np.concatenate([from_log_odds(part.odds) for part in judged])
    before, error = (expected_calibration_error(said, truth, weight=weight) for said in (plain, after))
    whole, by_relation = _fit(rows)
    if error > before:
        after, error, whole, by_relation = plain, before, MonotoneMap.plain(), {}
    return Calibration(
        whole=whole,
        by_relation=by_relation,
        num_hidden=int(rows.is_true.sum()),
        num_queries=len(np.unique(rows.query)),
        error_before=before,
        error_after=error,
        reliability=_table(after, truth, weight),
    )


def expected_calibration_error(
    probability: FloatArray, is_true: BoolArray, bins: int = BINS, weight: FloatArray | None = None
) -> float:
    """Mean distance between probability and frequency over equally wide bins, weighted by their size."""
    weight = np.ones_like(probability) if weight is None else weight
    where = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.bincount(where, weight * probability, bins) - np.bincount(where, weight * is_true, bins)
    return float(np.abs(gap).sum() / max(weight.sum(), 1e-12))


def _table(probability: FloatArray, is_true: BoolArray, weight: FloatArray) -> list[ReliabilityBin]:
    table = []
    for low, high in pairwise(TABLE_EDGES):
        here = (probability >= low) & ((probability < high) | (high == 1))
        if here.any():
            said, held = (float(np.average(column[here], weights=weight[here])) for column in (probability, is_true))
            table.append(ReliabilityBin(low, high, int(here.sum()), said, held))
    return table


def _fit(rows: JudgedProposals) -> tuple[MonotoneMap, dict[int, MonotoneMap]]:
    """The graph's map, and maps of relations with enough queries, drawn towards the graph's map."""
    whole = MonotoneMap.fit(rows.odds, rows.is_true.astype(float), rows.weight)
    by_relation: dict[int, MonotoneMap] = {}
    grid = np.quantile(rows.odds, np.linspace(0, 1, BINS))
    for relation in np.unique(rows.relation):
        own = rows[rows.relation == relation]
        if len(np.unique(own.query)) < MIN_RELATION_QUERIES:
            continue
        by_relation[int(relation)] = MonotoneMap.fit(
            np.concatenate([own.odds, grid]),
            np.concatenate([own.is_true.astype(float), whole(grid)]),
            np.concatenate([own.weight, np.full(len(grid), PRIOR_WEIGHT)]),
        )
    return whole, by_relation


def _judge(fitted_to: JudgedProposals, judged: JudgedProposals) -> FloatArray:
    """Probabilities of some candidates under the maps of others."""
    if not len(fitted_to.query):
        return from_log_odds(judged.odds)
    whole, by_relation = _fit(fitted_to)
    probability = whole(judged.odds)
    for relation, own in by_relation.items():
        at = judged.relation == relation
        probability[at] = own(judged.odds[at])
    return probability
