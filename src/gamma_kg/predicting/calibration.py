"""Probabilities that mean something on the user's own graph.

A model's scores rank; how often an answer with a given share of the scores is right depends on the graph. So some
facts are hidden, the model is asked for them, and a monotone map from share to frequency is fitted, for the whole
graph and for every relation with enough data. Truth here is what the graph holds: a true fact that nobody wrote
down counts as wrong, so the probabilities are careful.

B queries, N entities, C candidates kept of each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import both_ways

if TYPE_CHECKING:
    from gamma_kg.predicting.inference import ScoreBatch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ScoreQueries = Callable[[KnowledgeGraph, Tensor, Tensor], "Iterator[ScoreBatch]"]

SHOWN = 20  # candidates of a query that a person would look at; the map is fitted to these
BINS = 15
MIN_RELATION_QUERIES = 40
# A relation's own map starts from the graph's map as if that had been seen this often in every bin.
PRIOR_WEIGHT = 20.0
# Candidates pooled before fitting, and how many more the plain share counts for: a few lucky answers are no certainty.
GROUP = 10
SHARE_WEIGHT = 2.0
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class MonotoneMap:
    """A non-decreasing function through a few points, constant beyond them."""

    x: FloatArray
    y: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        return np.interp(x, self.x, self.y)

    @classmethod
    def fit(cls, x: FloatArray, y: FloatArray, weight: FloatArray | None = None) -> MonotoneMap:
        """Isotonic regression over small groups of neighbours, each drawn a little towards the plain share exp(x).

        Each level becomes one point at the mean of its x, so that the map rises between them.
        """
        from scipy.optimize import isotonic_regression  # slow to load, and only fitting needs it

        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        weight = np.ones_like(x) if weight is None else weight[order]
        # Equal x must stay together: a group starts where a new x begins at or after a multiple of GROUP.
        is_new = np.diff(x, prepend=-np.inf) > 0
        number = np.maximum.accumulate(np.where(is_new, np.arange(len(x)) // GROUP, 0))
        start = np.flatnonzero(np.diff(number, prepend=-1) > 0)
        size = np.add.reduceat(weight, start)
        centre = np.add.reduceat(weight * x, start) / size
        rate = (np.add.reduceat(weight * y, start) + SHARE_WEIGHT * np.exp(centre)) / (size + SHARE_WEIGHT)
        level = isotonic_regression(rate, weights=size).x
        first = np.flatnonzero(np.diff(level, prepend=-np.inf) > 0)
        total = np.add.reduceat(size, first)
        return cls(np.add.reduceat(size * centre, first) / total, np.clip(level[first], LEAST_PROBABILITY, 1.0))


@dataclass(frozen=True)
class Calibration:
    """Turns the log of a candidate's share into the frequency with which such candidates are right."""

    whole: MonotoneMap
    by_relation: Mapping[int, MonotoneMap] = field(repr=False)
    num_hidden: int = 0
    num_queries: int = 0
    error_before: float = 0.0
    """Expected calibration error of the plain shares, on hidden facts."""
    error_after: float = 0.0
    """The same after the map, each half of the queries judged by a map fitted to the other half."""

    def probability(self, relation: int, log_share: FloatArray) -> FloatArray:
        """Probabilities of candidates of a query with this relation id (inverses count on from num_relations)."""
        return self.by_relation.get(relation, self.whole)(log_share)

    def __str__(self) -> str:
        return (
            f"{self.num_hidden} facts hidden, {self.num_queries} queries asked: expected calibration error "
            f"{self.error_before:.3f} before, {self.error_after:.3f} after"
            f" ({len(self.by_relation)} relations with a map of their own)"
        )


@dataclass(frozen=True)
class _Rows:
    """Candidates of all queries: which query, which relation, log share, and whether the fact was a hidden one."""

    query: IntArray
    relation: IntArray
    log_share: FloatArray
    is_true: BoolArray

    def __getitem__(self, chosen: BoolArray) -> _Rows:
        return _Rows(self.query[chosen], self.relation[chosen], self.log_share[chosen], self.is_true[chosen])


def calibrate(
    score_queries: ScoreQueries,
    kg: KnowledgeGraph,
    *,
    share: float = 0.1,
    max_hidden: int = 500,
    seed: int = 0,
) -> Calibration:
    """Hides `share` of the facts (at most `max_hidden`), asks for them from both ends, and fits the maps."""
    if not 0 < share < 1:
        raise DataError(f"the share of facts to hide must lie between 0 and 1, got {share}")
    if max_hidden < 1:
        raise DataError(f"max_hidden must be at least 1, got {max_hidden}")
    rng = np.random.default_rng(seed)
    triples = np.unique(kg.triples.numpy(), axis=0)
    count = min(max_hidden, int(len(triples) * share))
    if count < 5:
        raise DataError(
            f"too few facts to calibrate: {len(triples)}; hiding {share:.0%} of them leaves {count} to check by"
        )
    is_hidden = np.zeros(len(triples), dtype=bool)
    is_hidden[rng.choice(len(triples), size=count, replace=False)] = True
    rest = KnowledgeGraph(triples[~is_hidden], kg.entities, kg.relations)
    rows = _ask(score_queries, rest, triples[is_hidden])
    half = rng.permutation(rows.query.max() + 1)[rows.query] % 2 == 0
    after = np.concatenate([_judge(rows[half], rows[~half]), _judge(rows[~half], rows[half])])
    truth = np.concatenate([rows[~half].is_true, rows[half].is_true])
    whole, by_relation = _fit(rows)
    return Calibration(
        whole=whole,
        by_relation=by_relation,
        num_hidden=count,
        num_queries=int(rows.query.max()) + 1,
        error_before=expected_calibration_error(np.exp(rows.log_share), rows.is_true),
        error_after=expected_calibration_error(after, truth),
    )


def log_shares(score_BN: Tensor, known_BN: Tensor) -> Tensor:
    """Log of each candidate's share of the softmax over candidates that are not known; −inf for known ones."""
    return score_BN.double().masked_fill(known_BN, -torch.inf).log_softmax(dim=1)


def expected_calibration_error(probability: FloatArray, is_true: BoolArray, bins: int = BINS) -> float:
    """Mean distance between probability and frequency over equally wide bins, weighted by their size."""
    where = np.minimum((probability * bins).astype(int), bins - 1)
    size = np.bincount(where, minlength=bins)
    gap = np.bincount(where, probability, bins) - np.bincount(where, is_true.astype(float), bins)
    return float(np.abs(gap).sum() / max(size.sum(), 1))


def _ask(score_queries: ScoreQueries, rest: KnowledgeGraph, hidden: IntArray) -> _Rows:
    ends = np.stack(both_ways(hidden, rest.num_relations), 1)
    queries, which = np.unique(ends[:, :2], axis=0, return_inverse=True)
    answers: dict[int, list[int]] = {}
    for query, answer in zip(which.ravel().tolist(), ends[:, 2].tolist(), strict=True):
        answers.setdefault(query, []).append(answer)
    parts: list[_Rows] = []
    asked = torch.from_numpy(queries)
    for batch in score_queries(rest, asked[:, 0], asked[:, 1]):
        for query, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
            found, known = batch.answers(row), rest.answers(int(queries[query, 0]), int(queries[query, 1]))
            index, best = found.best(SHOWN, known)
            best = best.double() - found.log_total(known)
            is_true = np.isin(index.numpy(), answers[query])
            size = len(index)
            parts.append(_Rows(np.full(size, query), np.full(size, queries[query, 1]), best.numpy(), is_true))
    return _Rows(
        np.concatenate([part.query for part in parts]),
        np.concatenate([part.relation for part in parts]),
        np.concatenate([part.log_share for part in parts]),
        np.concatenate([part.is_true for part in parts]),
    )


def _fit(rows: _Rows) -> tuple[MonotoneMap, dict[int, MonotoneMap]]:
    """The graph's map, and maps of relations with enough queries, drawn towards the graph's map."""
    whole = MonotoneMap.fit(rows.log_share, rows.is_true.astype(float))
    by_relation: dict[int, MonotoneMap] = {}
    grid = np.quantile(rows.log_share, np.linspace(0, 1, BINS))
    for relation in np.unique(rows.relation):
        own = rows[rows.relation == relation]
        if len(np.unique(own.query)) < MIN_RELATION_QUERIES:
            continue
        by_relation[int(relation)] = MonotoneMap.fit(
            np.concatenate([own.log_share, grid]),
            np.concatenate([own.is_true.astype(float), whole(grid)]),
            np.concatenate([np.ones(len(own.query)), np.full(len(grid), PRIOR_WEIGHT)]),
        )
    return whole, by_relation


def _judge(fitted_to: _Rows, judged: _Rows) -> FloatArray:
    """Probabilities of some candidates under the maps of others."""
    if not len(fitted_to.query):
        return np.exp(judged.log_share)
    whole, by_relation = _fit(fitted_to)
    probability = whole(judged.log_share)
    for relation, own in by_relation.items():
        at = judged.relation == relation
        probability[at] = own(judged.log_share[at])
    return probability
