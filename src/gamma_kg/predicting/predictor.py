"""Names in, ranked names out, for anything that scores entities: a `Gamma`, or a baseline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import inverse_of
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.calibrate import calibrate
from gamma_kg.predicting.calibration import Calibration
from gamma_kg.predicting.candidates import best_candidates, calibrated
from gamma_kg.predicting.frames import Predictions, predict_frame
from gamma_kg.predicting.kept_calibrations import KeptCalibrations
from gamma_kg.predicting.odds import FactOdds, FloatArray, best_of, from_log_odds
from gamma_kg.predicting.pair_scores import PairScores, pair_by_batches
from gamma_kg.predicting.prediction import Prediction, Query
from gamma_kg.predicting.relations_between import relations_between
from gamma_kg.predicting.score_batch import ScoreBatch
from gamma_kg.predicting.switch import Local, said
from gamma_kg.rules import rules_of

IntArray = NDArray[np.int64]


class Predictor(ABC):
    """Ranks the completions of facts; how entities are scored is up to the subclass."""

    branch_names: Sequence[str] = ()

    def __init__(self) -> None:
        self.calibrations = KeptCalibrations(self.fingerprint)

    @abstractmethod
    def score_batches(
        self,
        kg: KnowledgeGraph,
        source_Q: Tensor,
        relation_Q: Tensor,
        memory: str | int | None = None,
        local: Local = "auto",
    ) -> Iterator[ScoreBatch]:
        """Scores of all entities for queries by id, a batch at a time, in any order.

        `local`: from the neighbourhood of each source ("off": never, "auto": where the graph is large, a number: of
        so many triples), or from the whole graph. A predictor without neighbourhoods takes the whole graph.
        """

    def triples(self, kg: KnowledgeGraph, local: Local) -> int | None:
        """The budget that `local` means for answers of this predictor; None: they come from the whole graph."""
        return None

    def pair_scores(
        self, kg: KnowledgeGraph, head: int, relation_A: Tensor, tail: int, how: AnswerOptions
    ) -> PairScores:
        """What is said of (head, r, tail) by ids for each of some relations."""
        return pair_by_batches(
            kg, head, relation_A, tail, partial(self.score_batches, memory=how.memory, local=how.local)
        )

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all that decides the scores: results of different models are never mixed."""

    @overload
    def predict(
        self,
        kg: KnowledgeGraph,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        **options: Any,
    ) -> Predictions: ...
    @overload
    def predict(
        self,
        kg: KnowledgeGraph,
        *,
        head: str | list[str] | None = None,
        relation: str | list[str] | None = None,
        tail: str | list[str] | None = None,
        **options: Any,
    ) -> Predictions | list[Predictions]: ...
    def predict(
        self,
        kg: KnowledgeGraph,
        *,
        head: str | list[str] | None = None,
        relation: str | list[str] | None = None,
        tail: str | list[str] | None = None,
        **options: Any,
    ) -> Predictions | list[Predictions]:
        """The best completions of a fact of which two parts are given, best first; for a list of heads (or relations,
        or tails) one such list each, in their order. Options are those of `AnswerOptions`: `top_k`, `include_known` …

        Facts that the graph already holds are left out, unless `include_known`. With `rules`, answers that contradict
        what the graph itself shows are left out too (`gamma_kg.rules`). `local` as for `score_batches`.
        """
        queries = _each(head, relation, tail)
        answers = [Predictions() for _ in queries]
        for position, found in self.predict_many(kg, queries, **options):
            answers[position] = Predictions(found)
        return answers if any(isinstance(part, list) for part in (head, relation, tail)) else answers[0]

    def predict_frame(self, kg: KnowledgeGraph, frame: Any, **options: Any) -> Any:
        """A polars or pandas data frame of questions in, one of answers out: see `gamma_kg.predicting.frames`."""
        return predict_frame(self, kg, frame, **options)

    def predict_many(
        self,
        kg: KnowledgeGraph,
        queries: Sequence[Query],
        how: AnswerOptions | None = None,
        **options: Any,
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """The same for many facts (head, relation, tail) with None for the part to predict, in any order.

        Yields the position of a query and its predictions, as batches get done. The options are those of `how`, or
        given one by one.
        """
        how = replace(how or AnswerOptions(), **options)
        if any(query.count(None) != 1 for query in queries):
            raise DataError("give exactly two of head, relation and tail: the third is predicted")
        yield from self._predict_entities(kg, queries, how)
        for position, (head, relation, tail) in enumerate(queries):
            if relation is None and head is not None and tail is not None:
                yield position, relations_between(self, kg, head, tail, how)

    def _predict_entities(
        self, kg: KnowledgeGraph, queries: Sequence[Query], how: AnswerOptions
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """The answers to those queries that ask for a head or a tail."""
        wanted = [(at, *_ids(kg, query)) for at, query in enumerate(queries) if query[1] is not None]
        if not wanted:
            return
        _, source_Q, relation_Q = torch.tensor(wanted, dtype=torch.long).T
        calibration = self.calibration(kg, how.local, how.rules)
        odds = self.odds(kg, how) if calibration is not None else None
        rules = rules_of(kg) if how.rules else None
        for batch in self.score_batches(kg, source_Q, relation_Q, how.memory, how.local):
            asked = [wanted[q] for q in batch.query.tolist()]
            rows = batch.row.tolist()
            answers = [batch.answers(row) for row in rows]
            known = [kg.answers(source, relation) for _, source, relation in asked]
            without = [held[:0] for held in known] if how.include_known else known
            if rules is not None:
                without = [
                    torch.cat((ids, rules.without(source, relation, best=best_of(own, held))))
                    for (_, source, relation), own, held, ids in zip(asked, answers, known, without, strict=True)
                ]
            shown = known if how.include_known else [None] * len(known)
            ranked = batch.ranked(rows, how.top_k, without)
            best = [
                best_candidates(one, own, self.branch_names, ids, held)
                for one, own, ids, held in zip(ranked, answers, without, shown, strict=True)
            ]
            if calibration is not None and odds is not None:
                best = calibrated(calibration, odds, [query[1:] for query in asked], answers, best)
            for (position, source, relation), held, found in zip(asked, known, best, strict=True):
                why_not = rules.against_another(source, relation) if rules is not None else None
                is_known = set(held.tolist())
                yield (
                    position,
                    [one.named(queries[position], kg.entities[one.id], one.id in is_known, why_not) for one in found],
                )

    def scores(
        self,
        kg: KnowledgeGraph,
        sources: Sequence[int] | Tensor,
        relations: Sequence[int] | Tensor,
        memory: str | int | None = None,
        local: Local = "auto",
    ) -> Tensor:
        """Scores of all entities for queries by id, [queries, num_entities].

        Relation ids of `num_relations` and more are inverses: they ask for the head of a fact.
        """
        source_Q, relation_Q = torch.as_tensor(sources).long(), torch.as_tensor(relations).long()
        out: Tensor | None = None
        for batch in self.score_batches(kg, source_Q, relation_Q, memory=memory, local=local):
            score_BN = batch.scores.score_BC
            if out is None:
                out = torch.empty(len(source_Q), kg.num_entities, dtype=score_BN.dtype)
            out[batch.query] = score_BN[batch.row].cpu()
        return torch.empty(0, kg.num_entities) if out is None else out

    def odds(self, kg: KnowledgeGraph, how: AnswerOptions) -> FactOdds:
        """Weighs facts of the graph from both ends."""
        return FactOdds(partial(self.score_batches, memory=how.memory, local=how.local), kg, rules=how.rules)

    def calibrate(
        self,
        kg: KnowledgeGraph,
        *,
        share: float = 0.1,
        max_hidden: int = 150,
        seed: int = 0,
        local: Local = "auto",
        rules: bool = True,
        budget_seconds: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Calibration:
        """Fits probabilities to this graph: hides some of its facts and sees how often proposals are right.

        From then on answers for `kg` with this `local` and `rules` carry these probabilities, in this program and,
        as they are written down, in every later one (`predicting/kept_calibrations.py`).
        """
        triples = self.triples(kg, local)  # of the whole graph: without some facts, "auto" might mean something else
        score_queries = partial(self.score_batches, local=said(triples))
        found = calibrate(
            score_queries,
            kg,
            share=share,
            max_hidden=max_hidden,
            seed=seed,
            rules=rules,
            budget_seconds=budget_seconds,
            progress=progress,
        )
        self.calibrations.keep(kg, triples, rules, found)
        return found

    def adopt_calibration(
        self, kg: KnowledgeGraph, calibration: Calibration, local: Local = "auto", rules: bool = True
    ) -> None:
        """Use what another process found with the same model for the same graph."""
        self.calibrations.adopt(kg, self.triples(kg, local), rules, calibration)

    def calibration(self, kg: KnowledgeGraph, local: Local = "auto", rules: bool = True) -> Calibration | None:
        """What `calibrate` found for this graph, now or earlier; None if it was never called."""
        return self.calibrations.of(kg, self.triples(kg, local), rules)

    def fact_probability(
        self, kg: KnowledgeGraph, head: int, relation: int, tail: int, how: AnswerOptions
    ) -> float | None:
        """The calibrated probability of a fact by ids, the same as in every other place; None if none was fitted."""
        if self.calibration(kg, how.local, how.rules) is None:
            return None
        return float(self.fact_probabilities(kg, np.array([[head, relation, tail]]), how)[0])

    def fact_probabilities(self, kg: KnowledgeGraph, facts: IntArray, how: AnswerOptions) -> FloatArray:
        """How likely facts (head, relation, tail) by ids are, from both their ends: fitted, else by the plain odds."""
        calibration, log_odds = self.calibration(kg, how.local, how.rules), self.odds(kg, how).of_facts(facts)
        if calibration is None:
            return from_log_odds(log_odds)
        relations = enumerate(facts[:, 1].tolist())
        return np.array([calibration.probability(relation, log_odds[at : at + 1])[0] for at, relation in relations])


def _each(*parts: str | list[str] | None) -> list[Query]:
    """One query for each item of the list among the parts, if there is one."""
    lists = [part for part in parts if isinstance(part, list)]
    if len(lists) > 1:
        raise DataError("give a list for one of head, relation and tail; for pairs, use predict_frame or predict_many")
    each = range(len(lists[0]) if lists else 1)
    return [tuple(part[i] if isinstance(part, list) else part for part in parts) for i in each]  # type: ignore[misc]


def _ids(kg: KnowledgeGraph, query: Query) -> tuple[int, int]:
    """Source and relation id of a query for an entity: with a tail given, the relation is read from its other end."""
    head, relation, tail = query
    relation_id = kg.relation_id(relation or "")
    if head is not None:
        return kg.entity_id(head), relation_id
    return kg.entity_id(tail or ""), inverse_of(relation_id, kg.num_relations)
