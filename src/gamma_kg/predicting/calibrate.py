"""Fits probabilities to a graph: hides some of its facts and sees how often proposals are right.

What a probability means: a tenth of the facts is taken out at random, the queries that `complete` would ask are asked,
and the probability is how often such a proposal was one of the facts taken out. A true fact that nobody ever wrote
down counts as wrong, so the probabilities are careful.

Queries that lost an answer are few among all queries; both kinds are asked equally often and weighed by how many
there are of each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.graph.fewer_facts import FewerFacts
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import both_ways, direct_of
from gamma_kg.predicting.calibration import Calibration, FloatArray
from gamma_kg.predicting.odds import FactOdds, ScoreQueries
from gamma_kg.predicting.pace import OutOfTimeError, Pace
from gamma_kg.predicting.reliability import JudgedProposals, fit_calibration
from gamma_kg.rules.rules import MOST_FACTS
from gamma_kg.rules.sample import EntitySample
from gamma_kg.rules.slots import choose_queries

IntArray = NDArray[np.int64]

SHOWN = 2  # answers of a query that are checked from their other ends
BLOCK_QUERIES = 32
LEAST_QUERIES = 16  # a map that fewer gave would be kept, and wrong
FACTS_OF_GROUP = 64  # of one entity and relation that may be hidden in a large graph


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
    try:
        queries, weight, answers = _chosen(odds, rest, hidden, max_hidden, rng, pace.require_time)
    except OutOfTimeError:
        raise DataError("the time ended while it was being chosen what to ask; give it more time") from None
    parts: list[JudgedProposals] = []
    start = 0
    while start < len(queries) and (size := pace.next()):
        if progress is not None:
            progress(start, len(queries))
        block = slice(start, start + size)
        parts.append(_ask(odds, rest, queries[block], weight[block], answers[block], start))
        start += size
    if start < min(LEAST_QUERIES, len(queries)):
        raise DataError(
            f"there was time for {start} of {len(queries)} queries, too few to fit probabilities by; give it more time"
        )
    rows = JudgedProposals.joined(parts)
    if start < len(queries) and not rows.is_true.any():
        raise DataError(
            f"none of the hidden facts came up in the {start} of {len(queries)} queries that there was time for: "
            "nothing to fit probabilities by; give it more time"
        )
    return fit_calibration(rows, rng)


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
    odds: FactOdds,
    rest: KnowledgeGraph,
    hidden: IntArray,
    most: int,
    rng: np.random.Generator,
    tick: Callable[[], None],
) -> tuple[IntArray, FloatArray, list[IntArray]]:
    """Queries, how much each counts, and their hidden answers; those that lost an answer and others in turns."""
    num = rest.num_relations
    source, relation, answer = (column.astype(np.int64) for column in both_ways(hidden, num))
    key = source * rest.num_types + relation
    order = np.argsort(key, kind="stable")
    key, answer = key[order], answer[order]
    queue = choose_queries(rest, odds.slots, np.arange(num), tick=tick)
    queue_key = queue[:, 0] * rest.num_types + queue[:, 1]
    lost = np.isin(queue_key, key)
    if not lost.any():  # nothing of what is missing would be asked for: judge by what is missing
        queue_key, lost = np.unique(key), np.ones(len(np.unique(key)), dtype=bool)
        queue = np.stack([queue_key // rest.num_types, queue_key % rest.num_types], axis=1)
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
) -> JudgedProposals:
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
    return JudgedProposals(
        first + number,
        direct_of(fact[:, 1], rest.num_relations),
        (np.array(from_here, dtype=np.float64) + np.array(from_there, dtype=np.float64)) / 2,
        np.array([entity in answers[at] for at, entity in zip(numbers, fact[:, 2].tolist(), strict=True)], dtype=bool),
        weight[number],
    )
