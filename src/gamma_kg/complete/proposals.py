"""Asks the queries that promise most, checks the best answers from the other end, and ranks them as facts.

The probability of a fact from one end is the chance that the query has a missing answer at all (its worth) times the
probability that this candidate is the answer. The two ends are combined by the mean of their log-odds.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, fact_of, inverse_of
from gamma_kg.io.journal import Journal
from gamma_kg.nn.answers import Answers
from gamma_kg.predicting.fingerprint import run_fingerprint
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.predicting.switch import Local, local_triples
from gamma_kg.rules import rules_of
from gamma_kg.rules.slots import Slots, choose_queries

BLOCK_QUERIES = 64
KEPT_PER_QUERY = 10
# Answers less probable than this are not checked from the other end.
LEAST_PROBABILITY = 0.02
CACHED_BYTES = 1 << 28
LOCAL_ENTITIES = 10_000
Found = tuple[int, int, int, float, float]  # head, relation, tail, probability, score


@dataclass(frozen=True)
class Fact:
    """A fact that the graph does not hold, and how probable it is."""

    head: str
    relation: str
    tail: str
    probability: float
    score: float


@dataclass(frozen=True)
class Completion:
    """The facts found, best first, and how far the run came."""

    facts: list[Fact]
    queries_asked: int
    queries_in_all: int
    seconds: float

    @property
    def is_finished(self) -> bool:
        return self.queries_asked == self.queries_in_all


def complete(
    model: Predictor,
    kg: KnowledgeGraph,
    *,
    relations: Sequence[str] | None = None,
    entities: Sequence[str] | None = None,
    top: int = 100,
    min_probability: float = 0.0,
    budget_seconds: float | None = None,
    journal: Path | None = None,
    rules: bool = True,
    progress: Callable[[int, int], None] | None = None,
    memory: str | int | None = None,
    local: Local = "auto",
) -> Completion:
    """The `top` most probable facts that `kg` does not hold: of these relations and about these entities, if given.

    Probabilities are calibrated if `model.calibrate(kg)` was called before. With a `journal` a run that was stopped,
    or whose budget was used up, goes on where it ended. `progress` gets (queries asked, queries in all). `local` as for
    `predict`: proposals are the answers that it gives.
    """
    if top < 1:
        raise DataError(f"top must be at least 1, got {top}")
    if not 0 <= min_probability <= 1:
        raise DataError(f"min_probability must lie between 0 and 1, got {min_probability}")
    started = time.monotonic()
    chosen = range(kg.num_relations) if relations is None else [kg.relation_id(name) for name in relations]
    slots = rules_of(kg).slots
    queries = choose_queries(kg, slots, np.unique(np.array(chosen, dtype=np.int64)))
    if entities is not None:
        queries = queries[np.isin(queries[:, 0], [kg.entity_id(name) for name in entities])]
    options = {
        "relations": None if relations is None else sorted(relations),
        "entities": None if entities is None else sorted(entities),
        "min_probability": min_probability,
        "rules": rules,
    }
    record = Journal(journal, run_fingerprint(model, kg, local, **options))
    found: list[Found] = [tuple(fact) for block in record.blocks for fact in block["facts"]]
    asked = sum(block["queries"] for block in record.blocks)
    finder = _Finder(model, kg, slots, max(min_probability, LEAST_PROBABILITY), rules, memory, local)
    finder.seen.update(fact[:3] for fact in found)
    try:
        while asked < len(queries) and not _is_over(started, budget_seconds):
            if progress is not None:
                progress(asked, len(queries))
            block = queries[asked : asked + BLOCK_QUERIES]
            facts = [fact for fact in finder.facts(block) if fact[3] >= min_probability]
            record.add({"queries": len(block), "facts": facts})
            found.extend(facts)
            asked += len(block)
    except BaseException:
        record.close()
        raise
    if progress is not None:
        progress(asked, len(queries))
    record.remove() if asked == len(queries) else record.close()
    return Completion(_ranked(kg, found)[:top], asked, len(queries), time.monotonic() - started)


@dataclass(frozen=True, eq=False)
class Shares:
    """The answers to a query, with what their shares are shares of."""

    answers: Answers
    known: Tensor
    log_total: float

    def of(self, entity: int) -> float:
        """Log share of a candidate that is not known."""
        return float(self.answers.at(torch.tensor([entity])).double()[0]) - self.log_total


def best_fitting(answers: Answers, fits_N: Tensor, without: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Ids and scores of the best `count` candidates that fit; looks further until there are so many."""
    wanted = 4 * count
    while True:
        index, score = answers.best(wanted, without)
        fits = fits_N[index]
        if int(fits.sum()) >= count or len(index) < wanted:
            return index[fits][:count], score[fits][:count]
        wanted *= 4


class _Finder:
    """Turns queries into facts that fit, are not known, and hold from both ends."""

    def __init__(
        self,
        model: Predictor,
        kg: KnowledgeGraph,
        slots: Slots,
        floor: float,
        rules: bool,
        memory: str | int | None,
        local: Local,
    ) -> None:
        self._rules = rules_of(kg) if rules else None
        self._model, self._kg, self._slots, self._floor = model, kg, slots, floor
        self._memory, self._local = memory, local
        self._calibration = model.calibration(kg, local)
        self.seen: set[tuple[int, int, int]] = set()
        # Many facts share their other end (every athlete's sport), so its shares are kept for a while.
        self._other_ends: OrderedDict[tuple[int, int], Shares] = OrderedDict()
        # A neighbourhood is small; the whole graph has a score and some branch weights per entity.
        is_whole = local_triples(kg, local) is None
        self._bytes = 4 * (1 + len(model.branch_names)) * (kg.num_entities if is_whole else LOCAL_ENTITIES)
        head, relation, tail = kg.triples.numpy().T
        self._has_loops = np.bincount(relation[head == tail], minlength=kg.num_relations) > 0

    def facts(self, queries: NDArray[np.int64]) -> list[Found]:
        """Facts that the queries (source, relation id) give and that no earlier call gave."""
        proposals: list[tuple[int, int, int, float, float]] = []
        for source, asked, shares in self._ask(queries):
            proposals.extend(self._proposals(source, asked, shares))
        opposite = np.array([(answer, self._inverse(asked)) for _, asked, answer, _, _ in proposals], dtype=np.int64)
        missing = [
            (a, r) for a, r in np.unique(opposite.reshape(-1, 2), axis=0).tolist() if (a, r) not in self._other_ends
        ]
        for source, asked, shares in self._ask(np.array(missing, dtype=np.int64).reshape(-1, 2)):
            self._other_ends[source, asked] = shares
        found = [self._checked(*proposal) for proposal in proposals]
        while len(self._other_ends) > 1 and len(self._other_ends) * self._bytes > CACHED_BYTES:
            self._other_ends.popitem(last=False)
        return found

    def _ask(self, queries: NDArray[np.int64]) -> Iterator[tuple[int, int, Shares]]:
        """(source, relation id, shares) of each query; what is known has no share."""
        if not len(queries):
            return
        asked = torch.from_numpy(queries)
        batches = self._model.score_batches(self._kg, asked[:, 0], asked[:, 1], memory=self._memory, local=self._local)
        for batch in batches:
            for position, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
                source, relation = queries[position].tolist()
                answers, known = batch.answers(row), self._kg.answers(source, relation)
                yield source, relation, Shares(answers, known, answers.log_total(known))

    def _proposals(self, source: int, asked: int, shares: Shares) -> Iterator[tuple[int, int, int, float, float]]:
        """(source, asked, answer, probability, score) of the best answers that are new."""
        fits_N = torch.from_numpy(self._slots.fits(self._inverse(asked)))
        without = shares.known
        if not self._has_loops[direct_of(asked, self._kg.num_relations)]:
            without = torch.cat((without, torch.tensor([source])))
        if self._rules is not None:
            fits_N = fits_N & ~torch.from_numpy(self._rules.blocked(source, asked))
        index, score = best_fitting(shares.answers, fits_N, without, KEPT_PER_QUERY)
        log_share = (score.double() - shares.log_total).numpy()
        for answer, s, p in zip(
            index.tolist(), score.tolist(), self._probability(source, asked, log_share), strict=True
        ):
            fact = self._fact(source, asked, answer)
            if p < self._floor:
                break
            if fact not in self.seen:
                self.seen.add(fact)
                yield source, asked, answer, p, s

    def _checked(self, source: int, asked: int, answer: int, probability: float, score: float) -> Found:
        share = self._other_ends[answer, self._inverse(asked)].of(source)
        other = self._probability(answer, self._inverse(asked), np.array([share], dtype=np.float64))[0]
        odds = np.mean([_log_odds(probability), _log_odds(other)])
        return (*self._fact(source, asked, answer), float(1 / (1 + np.exp(-odds))), score)

    def _probability(self, source: int, asked: int, share: NDArray[np.float64]) -> list[float]:
        answer = np.exp(share) if self._calibration is None else self._calibration.probability(asked, share)
        probability: list[float] = (self._slots.worth(asked)[source] * answer).tolist()
        return probability

    def _fact(self, source: int, asked: int, answer: int) -> tuple[int, int, int]:
        return fact_of(source, asked, answer, self._kg.num_relations)

    def _inverse(self, asked: int) -> int:
        return inverse_of(asked, self._kg.num_relations)


def _log_odds(probability: float) -> float:
    p = min(max(probability, 1e-6), 1 - 1e-6)
    return float(np.log(p) - np.log1p(-p))


def _ranked(kg: KnowledgeGraph, found: list[Found]) -> list[Fact]:
    """Facts with names, most probable first."""
    ordered = sorted(found, key=lambda fact: (-fact[3], -fact[4], fact[:3]))
    return [Fact(kg.entities[h], kg.relations[r], kg.entities[t], p, score) for h, r, t, p, score in ordered]


def _is_over(started: float, budget_seconds: float | None) -> bool:
    return budget_seconds is not None and time.monotonic() - started >= budget_seconds
