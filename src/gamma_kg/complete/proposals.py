"""Asks the queries that promise most, checks the best answers from the other end, and ranks them as facts.

How probable a fact is does not depend on the end that it was asked from (`predicting/odds.py`), nor on who asks: with
a calibration (`predicting/calibrate.py`) `predict` and `explain` say the same number.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.complete.choice import Choice
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, fact_of, inverse_of
from gamma_kg.io.journal import Journal
from gamma_kg.nn.answers import Answers
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.fingerprint import run_fingerprint
from gamma_kg.predicting.odds import End, FactOdds, from_log_odds, log_odds
from gamma_kg.predicting.pace import OutOfTimeError, Pace
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.predicting.switch import Local
from gamma_kg.rules import Rules, rules_of
from gamma_kg.rules.reasons import MIN_CASES, ReasonFinder
from gamma_kg.rules.slots import choose_queries
from gamma_kg.rules.together import Together

BLOCK_QUERIES = 64
KEPT_PER_QUERY = 10
# Answers less probable than this, before anything is fitted, are not checked from the other end.
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
    queries_in_all: int | None  # None: it ended while it was being chosen what to ask
    seconds: float
    was_interrupted: bool = False

    @property
    def is_finished(self) -> bool:
        return self.queries_asked == self.queries_in_all


def complete(
    model: Predictor,
    kg: KnowledgeGraph,
    *,
    relations: Sequence[str] | None = None,
    exclude_relations: Sequence[str] = (),
    entities: Sequence[str] | None = None,
    type: str | None = None,
    top: int = 100,
    min_probability: float | Mapping[str, float] = 0.0,
    max_per_relation: int | None = None,
    min_cases: int = MIN_CASES,
    likely_from: float = 0.0,
    budget_seconds: float | None = None,
    journal: Path | None = None,
    rules: bool = True,
    progress: Callable[[int, int], None] | None = None,
    on_interrupt: Literal["raise", "return"] = "raise",
    memory: str | int | None = None,
    local: Local = "auto",
) -> Completion:
    """The `top` most probable facts that `kg` does not hold: of these relations, about these entities or those of a
    type, if given.

    `min_probability` is one bound, or one per relation name with "" for all others. The list ends at `likely_from`
    too, but for relations with a bound of their own; where nothing is so probable, it has the likeliest few. No
    relation takes more than a fifth of the list while others have proposals; `max_per_relation` is a strict bound.
    What no reason speaks for, a rule of the graph with `min_cases` cases or more, is left out (0 lists it too; so does
    `rules=False`).
    Probabilities are calibrated if `model.calibrate(kg)` was ever called. With a `journal` a run that was stopped, or
    whose budget was used up, goes on where it ended and gives the same facts to the last bit. `progress` gets (queries
    asked, queries in all). Ctrl-C is raised again, or ends the run with what it has. `local` as for `predict`.
    """
    choice = Choice.of(
        kg,
        top=top,
        relations=relations,
        exclude_relations=exclude_relations,
        entities=entities,
        type=type,
        min_probability=min_probability,
        max_per_relation=max_per_relation,
        min_cases=min_cases,
        likely_from=likely_from,
    )
    started, pace = time.monotonic(), Pace(BLOCK_QUERIES, budget_seconds)
    how = AnswerOptions(rules=rules, memory=memory, local=local)
    record = Journal(journal, run_fingerprint(model, kg, how, **choice.record()))
    found: list[Found] = [tuple(fact) for block in record.blocks for fact in block["facts"]]
    asked = sum(block["queries"] for block in record.blocks)
    in_all: int | None = None
    was_interrupted = False
    try:
        queries = promising_queries(kg, choice, rules=rules, tick=pace.require_time)
        in_all = len(queries)
        finder = Finder(model, kg, how, choice.min_cases)
        finder.seen.update(fact[:3] for fact in found)
        while asked < in_all and (size := pace.next()):
            if progress is not None:
                progress(asked, in_all)
            block = queries[asked : asked + size]
            new = [fact for fact in finder.facts(block) if fact[3] >= choice.bound(fact[1])]
            record.add({"queries": len(block), "facts": new})
            found.extend(new)
            asked += len(block)
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        record.close()
        if on_interrupt == "raise":
            raise
        was_interrupted = True
    except BaseException:
        record.close()
        raise
    if progress is not None and in_all is not None and not was_interrupted:
        progress(asked, in_all)
    if asked == in_all:
        record.remove()
    else:
        record.close()
    facts = listed(kg, choice, found, rules=rules)
    return Completion(facts, asked, in_all, time.monotonic() - started, was_interrupted)


def promising_queries(
    kg: KnowledgeGraph, choice: Choice, *, rules: bool = True, tick: Callable[[], None] = lambda: None
) -> NDArray[np.int64]:
    """The queries (source, relation id) that a completion asks, most promising first, [n, 2]; without rules also those
    that no answer fits. `tick` as for `choose_queries`."""
    relations = np.array(choice.relations, dtype=np.int64)
    among = None if choice.entities is None else np.array(sorted(choice.entities), dtype=np.int64)
    chosen = choose_queries(kg, rules_of(kg).slots, relations, among, tick)
    return choice.about(kg, chosen, by_rules=rules, tick=tick)


def listed(kg: KnowledgeGraph, choice: Choice, found: Sequence[Found], *, rules: bool) -> list[Fact]:
    """The facts to show, by name, most probable first; with rules none that contradicts one above it."""
    ordered = sorted(found, key=lambda fact: (-fact[3], -fact[4], fact[:3]))
    admits = Together(rules_of(kg)).admits if rules else lambda *fact: True
    shown = choice.listed(ordered, admits)
    return [Fact(kg.entities[h], kg.relations[r], kg.entities[t], p, score) for h, r, t, p, score in shown]


def best_fitting(
    answers: Answers,
    are_fit: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    without: Tensor,
    count: int,
    is_worth_it: Callable[[Tensor], bool] = lambda worst: True,
) -> Tensor:
    """Ids of the best `count` candidates that fit; looks further until there are so many, or the worst of those that
    were looked at is not worth it."""
    wanted = 4 * count
    while True:
        index, _ = answers.best(wanted, without)
        fits = torch.from_numpy(are_fit(index.numpy()))
        if int(fits.sum()) >= count or len(index) < wanted or not is_worth_it(index[-1:]):
            return index[fits][:count]
        wanted *= 4


class Finder:
    """Turns queries into facts that fit, are not known, and hold from both ends."""

    def __init__(self, model: Predictor, kg: KnowledgeGraph, how: AnswerOptions, min_cases: int) -> None:
        """`min_cases`: how many cases a reason for each fact must have; 0 if none is needed."""
        self._kg = kg
        self._odds: FactOdds = model.odds(kg, how)
        rules = self._odds.rules
        self._unasked = rules.unasked if how.rules and isinstance(rules, Rules) else None
        self._reasons, self._min_cases = ReasonFinder(kg) if how.rules and min_cases else None, min_cases
        self._calibration = model.calibration(kg, how.local, how.rules)
        self.seen: set[tuple[int, int, int]] = set()
        # Many facts share their other end (every athlete's sport), so its answers are kept for a while.
        self._other_ends: OrderedDict[tuple[int, int], End] = OrderedDict()
        # A neighbourhood is small; the whole graph has a score and some branch weights per entity.
        is_whole = model.triples(kg, how.local) is None
        self._bytes = 4 * (1 + len(model.branch_names)) * (kg.num_entities if is_whole else LOCAL_ENTITIES)

    def facts(self, queries: NDArray[np.int64]) -> list[Found]:
        """Facts that the queries (source, relation id) give and that no earlier call gave."""
        proposals: list[tuple[End, int, float]] = []
        # Batches come in any order, and a fact belongs to the query that comes first.
        ends = {(end.source, end.relation): end for end in self._odds.ask(queries)}
        for source, relation in queries.tolist():
            proposals.extend(self._proposals(ends[source, relation]))
        opposite = {(answer, self._inverse(end.relation)) for end, answer, _ in proposals}
        missing = sorted(opposite - self._other_ends.keys())
        for end in self._odds.ask(np.array(missing, dtype=np.int64).reshape(-1, 2)):
            self._other_ends[end.source, end.relation] = end
        found = [self._checked(*proposal) for proposal in proposals]
        while len(self._other_ends) > 1 and len(self._other_ends) * self._bytes > CACHED_BYTES:
            self._other_ends.popitem(last=False)
        return found

    def _proposals(self, end: End) -> Iterator[tuple[End, int, float]]:
        """(query, answer, plain log-odds from this end) of the best answers that are new."""
        are_fit = partial(self._odds.slots.are_fit, self._inverse(end.relation))
        without = end.without
        if self._unasked is not None:
            unwanted = np.flatnonzero(self._unasked.blocked(end.source, end.relation))
            without = torch.cat((without, torch.from_numpy(unwanted))).unique()
        if not self._odds.rules.has_loops(direct_of(end.relation, self._kg.num_relations)):
            without = torch.cat((without, torch.tensor([end.source]))).unique()
        least = float(log_odds(np.array([LEAST_PROBABILITY]))[0])

        def is_worth_it(worst: Tensor) -> bool:
            return float(end.log_odds(worst)[0]) >= least

        index = best_fitting(end.answers, are_fit, without, KEPT_PER_QUERY, is_worth_it)
        for answer, odds in zip(index.tolist(), end.log_odds(index).tolist(), strict=True):
            fact = fact_of(end.source, end.relation, answer, self._kg.num_relations)
            if odds < least:
                break
            if fact in self.seen:
                continue
            self.seen.add(fact)
            if self._is_worth_proposing(*fact):
                yield end, answer, odds

    def _is_worth_proposing(self, head: int, direct: int, tail: int) -> bool:
        """Whether the graph's habits leave room for a fact, and something in it speaks for the fact."""
        if self._unasked is not None and self._unasked.is_unlike_the_rest(head, direct, tail):
            return False
        return self._reasons is None or self._reasons.has_one_to_go_by(head, direct, tail, self._min_cases)

    def _checked(self, end: End, answer: int, odds: float) -> Found:
        other = self._other_ends[answer, self._inverse(end.relation)].log_odds(torch.tensor([end.source]))
        both = (other + odds) / 2
        direct = direct_of(end.relation, self._kg.num_relations)
        fitted = from_log_odds(both) if self._calibration is None else self._calibration.probability(direct, both)
        score = float(end.answers.at(torch.tensor([answer]))[0])
        return (*fact_of(end.source, end.relation, answer, self._kg.num_relations), float(fitted[0]), score)

    def _inverse(self, relation: int) -> int:
        return inverse_of(relation, self._kg.num_relations)
