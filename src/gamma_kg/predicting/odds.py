"""How likely a fact is before anything was fitted: the same number from whichever end it was asked for.

From one end a fact's probability is the worth of the query (the chance that an answer is missing at all,
`rules/slots.py`) times the candidate's share of the scores. The two ends are combined by the mean of their log-odds.
Shares are those among candidates that are neither known nor contradict the rules; a candidate that does is looked at
as if it alone did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import inverse_of
from gamma_kg.nn.answers import Answers
from gamma_kg.rules import rules_of

if TYPE_CHECKING:
    from gamma_kg.predicting.score_batch import ScoreBatch

FloatArray = NDArray[np.float64]
ScoreQueries = Callable[[KnowledgeGraph, Tensor, Tensor], "Iterator[ScoreBatch]"]
LEAST, MOST = 1e-6, 1 - 1e-6
LEAST_WORTH = 0.01


@dataclass(frozen=True, eq=False)
class End:
    """The answers to one query, with what their shares are shares of."""

    source: int
    relation: int
    answers: Answers
    known: Tensor
    without: Tensor  # known, and what contradicts the rules; ascending
    log_total: float
    worth: float
    worth_if_unknown: float  # of the query if one of its known answers were not known

    def log_shares(self, entity: Tensor) -> FloatArray:
        """Of candidates; of what is known or left out as if it were a candidate too."""
        score = self.answers.at(entity).double().numpy()
        is_out = torch.isin(entity, self.without).numpy()
        total = np.where(is_out, np.logaddexp(self.log_total, score), self.log_total)
        return np.asarray(score - total)

    def log_odds(self, entity: Tensor) -> FloatArray:
        """Log-odds of the facts that the candidates state, from this end."""
        is_known = torch.isin(entity, self.known).numpy()
        worth = np.where(is_known, self.worth_if_unknown, self.worth)
        return log_odds(np.maximum(worth, LEAST_WORTH) * np.exp(self.log_shares(entity)))


class FactOdds:
    """Asks queries of one graph and weighs their answers."""

    def __init__(self, score_queries: ScoreQueries, kg: KnowledgeGraph, *, rules: bool = True) -> None:
        self._score_queries, self._kg, self._uses_rules = score_queries, kg, rules
        self.rules = rules_of(kg)
        self.slots = self.rules.slots

    def ask(self, queries: NDArray[np.int64]) -> Iterator[End]:
        """The answers to queries (source, relation id), in any order, each as often as it is asked for."""
        if not len(queries):
            return
        asked = torch.from_numpy(np.ascontiguousarray(queries))
        for batch in self._score_queries(self._kg, asked[:, 0], asked[:, 1]):
            for position, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
                source, relation = queries[position].tolist()
                yield self.end(source, relation, batch.answers(row))

    def end(self, source: int, relation: int, answers: Answers) -> End:
        known = self._kg.answers(source, relation)
        without = known
        if self._uses_rules:
            without = torch.cat((known, self.rules.without(source, relation, best=best_of(answers, known))))
        without, asked = without.unique(), np.array([source])
        count = int(self.slots.counts(relation, asked)[0])
        worth = float(self.slots.worth_of(relation, asked)[0])
        unknown = worth if count != 1 else float(self.slots.fits_of(relation, asked)[0])
        return End(source, relation, answers, known, without, answers.log_total(without), worth, unknown)

    def of_facts(self, facts: NDArray[np.int64]) -> FloatArray:
        """Log-odds of facts (head, relation, tail) by ids: the mean of what their two ends say."""
        opposite = np.stack([facts[:, 2], inverse_of(facts[:, 1], self._kg.num_relations)], axis=1)
        ends = {(end.source, end.relation): end for end in self.ask(np.unique(np.r_[facts[:, :2], opposite], axis=0))}
        found = np.empty(len(facts))
        for at, (head, relation, tail) in enumerate(facts.tolist()):
            there = ends[head, relation].log_odds(torch.tensor([tail]))
            back = ends[tail, inverse_of(relation, self._kg.num_relations)].log_odds(torch.tensor([head]))
            found[at] = (there + back)[0] / 2
        return found

    def other_ends(self, facts: NDArray[np.int64]) -> dict[tuple[int, int], End]:
        """For facts as (source, relation id, answer): the queries from their other ends, by (answer, inverse id)."""
        opposite = np.stack([facts[:, 2], inverse_of(facts[:, 1], self._kg.num_relations)], axis=1)
        return {(end.source, end.relation): end for end in self.ask(np.unique(opposite, axis=0))}


def best_of(answers: Answers, without: Tensor) -> Callable[[int], Tensor]:
    """The ids of the best so many answers."""
    return lambda count: answers.best(count, without)[0]


def log_odds(probability: FloatArray) -> FloatArray:
    p = np.clip(probability, LEAST, MOST)
    return np.asarray(np.log(p) - np.log1p(-p))


def from_log_odds(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-odds)))
