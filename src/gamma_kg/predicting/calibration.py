"""Probabilities that mean something on the user's own graph: one for a fact, from whichever end it is asked for.

What a probability means: a tenth of the facts is taken out at random, the queries that `complete` would ask are asked,
and the probability is how often such a proposal was one of the facts taken out. A true fact that nobody ever wrote
down counts as wrong, so the probabilities are careful. A monotone map leads there from the plain log-odds of a fact
(`predicting/odds.py`), for the whole graph and for every relation with enough data.

Queries that lost an answer are few among all queries; both kinds are asked equally often and weighed by how many
there are of each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.graph.fewer_facts import FewerFacts
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import both_ways, direct_of
from gamma_kg.predicting.odds import FactOdds, ScoreQueries, from_log_odds
from gamma_kg.predicting.pace import Pace
from gamma_kg.rules.rules import MOST_FACTS
from gamma_kg.rules.sample import EntitySample
from gamma_kg.rules.slots import choose_queries

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SHOWN = 2  # answers of a query that are checked from their other ends
BINS = 15
MIN_RELATION_QUERIES = 40
# A relation's own map starts from the graph's map as if that had been seen this often in every bin.
PRIOR_WEIGHT = 20.0
# Candidates pooled before fitting, and how many more the plain odds count for: a few lucky answers are no certainty.
GROUP = 10
SHARE_WEIGHT = 2.0
LEAST_PROBABILITY = 1e-6
BLOCK_QUERIES = 32
LEAST_QUERIES = 16
FACTS_OF_GROUP = 64  # of one entity and relation that may be hidden in a large graph
TABLE_EDGES = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class MonotoneMap:
    """A non-decreasing function through a few points, constant beyond them."""

    x: FloatArray
    y: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        return np.interp(x, self.x, self.y)

    @classmethod
    def fit(cls, x: FloatArray, y: FloatArray, weight: FloatArray | None = None) -> MonotoneMap:
        """Isotonic regression over small groups of neighbours, each drawn a little towards the probability of x.

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
        rate = (np.add.reduceat(weight * y, start) + SHARE_WEIGHT * from_log_odds(centre)) / (size + SHARE_WEIGHT)
        level = isotonic_regression(rate, weights=size).x
        first = np.flatnonzero(np.diff(level, prepend=-np.inf) > 0)
        total = np.add.reduceat(size, first)
        return cls(np.add.reduceat(size * centre, first) / total, np.clip(level[first], LEAST_PROBABILITY, 1.0))


@dataclass(frozen=True)
class ReliabilityBin:
    """Proposals whose probability lay between two bounds: what was said, and how often it was so."""

    low: float
    high: float
    count: int
    said: float
    held: float


@dataclass(frozen=True)
class Calibration:
    """Turns the plain log-odds of a fact into the frequency with which such facts are right."""

    whole: MonotoneMap
    by_relation: Mapping[int, MonotoneMap] = field(repr=False)
    num_hidden: int = 0
    num_queries: int = 0
    error_before: float = 0.0
    """Expected calibration error of the plain odds, on hidden facts."""
    error_after: float = 0.0
    """The same after the map, each half of the queries judged by a map fitted to the other half."""
    reliability: Sequence[ReliabilityBin] = ()
    """What was said and how often it held, judged in the same way."""

    def probability(self, relation: int, odds: FloatArray) -> FloatArray:
        """Probabilities of facts of a relation (by its direct id) from their plain log-odds."""
        return self.by_relation.get(relation, self.whole)(odds)

    def __str__(self) -> str:
        return (
            f"{self.num_hidden} facts hidden, {self.num_queries} queries asked: expected calibration error "
            f"{self.error_before:.3f} before, {self.error_after:.3f} after"
            f" ({len(self.by_relation)} relations with a map of their own)"
        )

    def digest(self) -> str:
        """The same for the same maps."""
        return hashlib.sha256(json.dumps(self.to_dict()).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        maps = {"whole": self.whole, **{str(r): own for r, own in self.by_relation.items()}}
        return {
            "maps": {name: [found.x.tolist(), found.y.tolist()] for name, found in maps.items()},
            "reliability": [list(vars(row).values()) for row in self.reliability],
            **{name: getattr(self, name) for name in ("num_hidden", "num_queries", "error_before", "error_after")},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Calibration:
        maps = {name: MonotoneMap(np.array(x), np.array(y)) for name, (x, y) in record["maps"].items()}
        return cls(
            maps.pop("whole"),
            {int(name): own for name, own in maps.items()},
            reliability=[ReliabilityBin(*row) for row in record["reliability"]],
            **{name: record[name] for name in ("num_hidden", "num_queries", "error_before", "error_after")},
        )


@dataclass(frozen=True)
class _Rows:
    """Answers of all queries: which query, which relation, plain log-odds, whether hidden, and how much it counts."""

    query: IntArray
    relation: IntArray
    odds: FloatArray
    is_true: BoolArray
    weight: FloatArray

    def __getitem__(self, chosen: BoolArray) -> _Rows:
        return _Rows(*(column[chosen] for column in vars(self).values()))


def calibrate(
    score_queries: ScoreQueries,
    kg: KnowledgeGraph,
    *,
    share: float = 0.1,
    max_hidden: int = 150,
    seed: int = 0,
    rules: bool = True,
    budget_seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Hides `share` of the facts, asks for at most `max_hidden` of them and as many other queries, and fits the maps.

    With a budget, what was asked when it is used up has to do. `progress` gets (queries asked, queries in all).
    """
    if not 0 < share < 1:
        raise DataError(f"the share of facts to hide must lie between 0 and 1, got {share}")
    if max_hidden < 1:
        raise DataError(f"max_hidden must be at least 1, got {max_hidden}")
    pace = Pace(BLOCK_QUERIES, budget_seconds)
    rng = np.random.default_rng(seed)
    rest, hidden = (_hide_of_all if kg.num_triples <= MOST_FACTS else _hide_around_sample)(kg, share, rng)
    odds = FactOdds(score_queries, rest, rules=rules)
    queries, weight, answers = _chosen(odds, rest, hidden, max_hidden, rng)
    parts: list[_Rows] = []
    start = 0
    # Where there is no time for more than a few queries, these few still have to do.
    while start < len(queries) and (size := pace.next() or max(0, LEAST_QUERIES - start)):
        if progress is not None:
            progress(start, len(queries))
        block = slice(start, start + size)
        parts.append(_ask(odds, rest, queries[block], weight[block], answers[block], start))
        start += size
    rows = _Rows(*(np.concatenate(column) for column in zip(*(vars(part).values() for part in parts), strict=True)))
    if start < len(queries) and not rows.is_true.any():
        raise DataError(
            f"none of the hidden facts came up in the {start} of {len(queries)} queries that there was time for: "
            "nothing to fit probabilities by; give it more time"
        )
    return _fitted(rows, rng)


def expected_calibration_error(
    probability: FloatArray, is_true: BoolArray, bins: int = BINS, weight: FloatArray | None = None
) -> float:
    """Mean distance between probability and frequency over equally wide bins, weighted by their size."""
    weight = np.ones_like(probability) if weight is None else weight
    where = np.minimum((probability * bins).astype(int), bins - 1)
    gap = np.bincount(where, weight * probability, bins) - np.bincount(where, weight * is_true, bins)
    return float(np.abs(gap).sum() / max(weight.sum(), 1e-12))


def _hide_of_all(kg: KnowledgeGraph, share: float, rng: np.random.Generator) -> tuple[KnowledgeGraph, IntArray]:
    """The graph less a share of its facts, and these."""
    triples = np.unique(kg.triples.numpy(), axis=0)
    count = int(len(triples) * share)
    if count < 5:
        raise DataError(
            f"too few facts to calibrate: {len(triples)}; hiding {share:.0%} of them leaves {count} to check by"
        )
    is_hidden = np.zeros(len(triples), dtype=bool)
    is_hidden[rng.choice(len(triples), size=count, replace=False)] = True
    rest = KnowledgeGraph(triples[~is_hidden], kg.entities, kg.relations, report=kg.report)
    return rest, triples[is_hidden]


def _hide_around_sample(kg: KnowledgeGraph, share: float, rng: np.random.Generator) -> tuple[KnowledgeGraph, IntArray]:
    """The same of a large graph: a share of the facts of those entities that its rules come from, and are asked of."""
    facts = EntitySample(kg.edges).facts(FACTS_OF_GROUP)
    hidden = np.unique(facts[rng.random(len(facts)) < share], axis=0)
    return KnowledgeGraph.of_facts(FewerFacts(kg, hidden), kg.entities, kg.relations, kg.report), hidden


def _chosen(
    odds: FactOdds, rest: KnowledgeGraph, hidden: IntArray, most: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, list[IntArray]]:
    """Queries, how much each counts, and their hidden answers; those that lost an answer and others in turns."""
    num = rest.num_relations
    source, relation, answer = (column.astype(np.int64) for column in both_ways(hidden, num))
    key = source * (2 * num) + relation
    order = np.argsort(key, kind="stable")
    key, answer = key[order], answer[order]
    queue = choose_queries(rest, odds.slots, np.arange(num))
    queue_key = queue[:, 0] * (2 * num) + queue[:, 1]
    lost = np.isin(queue_key, key)
    if not lost.any():  # nothing of what is missing would be asked for: judge by what is missing
        queue_key, lost = np.unique(key), np.ones(len(np.unique(key)), dtype=bool)
        queue = np.stack([queue_key // (2 * num), queue_key % (2 * num)], axis=1)
    both = [np.flatnonzero(lost), np.flatnonzero(~lost)]
    drawn = [rng.permutation(group)[:most] for group in both]
    weights = [np.full(len(part), len(group) / max(len(part), 1)) for group, part in zip(both, drawn, strict=True)]
    chosen, weight = np.concatenate(drawn), np.concatenate(weights)
    in_turns = np.argsort(np.concatenate([np.arange(len(part)) for part in drawn]), kind="stable")
    chosen, weight = chosen[in_turns], weight[in_turns]
    low, high = (np.searchsorted(key, queue_key[chosen], side=side) for side in ("left", "right"))
    return queue[chosen], weight / weight.mean(), [answer[a:b] for a, b in zip(low, high, strict=True)]


def _ask(
    odds: FactOdds, rest: KnowledgeGraph, queries: IntArray, weight: FloatArray, answers: list[IntArray], first: int
) -> _Rows:
    """The best answers to a block of queries, weighed from both ends."""
    at = {tuple(query): number for number, query in enumerate(queries.tolist())}
    facts, from_here, numbers = [], [], []
    for end in odds.ask(queries):
        index, _ = end.answers.best(SHOWN, end.without)
        for entity, value in zip(index.tolist(), end.log_odds(index).tolist(), strict=True):
            facts.append((end.source, end.relation, entity))
            from_here.append(value)
            numbers.append(at[end.source, end.relation])
    fact = np.array(facts, dtype=np.int64).reshape(-1, 3)
    others = odds.other_ends(fact)
    from_there = [
        float(others[entity, odds.rules.inverse(relation)].log_odds(torch.tensor([source]))[0])
        for source, relation, entity in facts
    ]
    number = np.array(numbers, dtype=np.int64)
    return _Rows(
        first + number,
        direct_of(fact[:, 1], rest.num_relations),
        (np.array(from_here, dtype=np.float64) + np.array(from_there, dtype=np.float64)) / 2,
        np.array([entity in answers[at] for at, entity in zip(numbers, fact[:, 2].tolist(), strict=True)], dtype=bool),
        weight[number],
    )


def _fitted(rows: _Rows, rng: np.random.Generator) -> Calibration:
    half = rng.permutation(int(rows.query.max()) + 1)[rows.query] % 2 == 0
    judged = [rows[~half], rows[half]]
    after = np.concatenate([_judge(rows[half], judged[0]), _judge(rows[~half], judged[1])])
    truth = np.concatenate([part.is_true for part in judged])
    weight = np.concatenate([part.weight for part in judged])
    whole, by_relation = _fit(rows)
    before = expected_calibration_error(from_log_odds(rows.odds), rows.is_true, weight=rows.weight)
    return Calibration(
        whole=whole,
        by_relation=by_relation,
        num_hidden=int(rows.is_true.sum()),
        num_queries=len(np.unique(rows.query)),
        error_before=before,
        error_after=expected_calibration_error(after, truth, weight=weight),
        reliability=_table(after, truth, weight),
    )


def _table(probability: FloatArray, is_true: BoolArray, weight: FloatArray) -> list[ReliabilityBin]:
    table = []
    for low, high in pairwise(TABLE_EDGES):
        here = (probability >= low) & ((probability < high) | (high == 1))
        if here.any():
            said, held = (float(np.average(column[here], weights=weight[here])) for column in (probability, is_true))
            table.append(ReliabilityBin(low, high, int(here.sum()), said, held))
    return table


def _fit(rows: _Rows) -> tuple[MonotoneMap, dict[int, MonotoneMap]]:
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


def _judge(fitted_to: _Rows, judged: _Rows) -> FloatArray:
    """Probabilities of some candidates under the maps of others."""
    if not len(fitted_to.query):
        return from_log_odds(judged.odds)
    whole, by_relation = _fit(fitted_to)
    probability = whole(judged.odds)
    for relation, own in by_relation.items():
        at = judged.relation == relation
        probability[at] = own(judged.odds[at])
    return probability
