"""Names in, ranked names out, for anything that scores entities: a `Gamma`, or a baseline."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, inverse_of
from gamma_kg.nn.answers import Answers, WholeAnswers
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.calibration import Calibration, calibrate
from gamma_kg.predicting.frames import Predictions, predict_frame
from gamma_kg.predicting.inference import ScoreBatch
from gamma_kg.predicting.kept_calibrations import calibration_path, keep, kept
from gamma_kg.predicting.odds import FactOdds, FloatArray, best_of, from_log_odds
from gamma_kg.predicting.switch import Local, said
from gamma_kg.rules import rules_of

IntArray = NDArray[np.int64]
Query = tuple[str | None, str | None, str | None]  # head, relation, tail; the one to be predicted is None


@dataclass(frozen=True)
class Prediction:
    """One proposed fact. `name` is the part that was asked for; the fact as a whole is (head, relation, tail)."""

    name: str
    score: float
    probability: float  # share among candidates not known; after `calibrate`, how often such an answer is right
    known: bool  # the graph already holds this fact
    branch_weights: dict[str, float]  # how much each branch counted
    head: str
    relation: str
    tail: str
    why_not: str | None = None  # what the graph's own patterns say against it
    local: int | None = None  # facts in the neighbourhood at most; None: computed on the whole graph
    is_sampled: bool = False  # entities outside of the neighbourhood were scored by a sample of the graph


class Predictor(ABC):
    """Ranks the completions of facts; how entities are scored is up to the subclass."""

    branch_names: Sequence[str] = ()

    def __init__(self) -> None:
        # Per graph, budget of triples (answers from a neighbourhood have a map of their own) and use of rules.
        self._calibrations: weakref.WeakKeyDictionary[
            KnowledgeGraph, dict[tuple[int | None, bool], Calibration | None]
        ] = weakref.WeakKeyDictionary()

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
        for_entities = [(at, *_ids(kg, query)) for at, query in enumerate(queries) if query[1] is not None]
        _, source_Q, relation_Q = torch.tensor(for_entities, dtype=torch.long).reshape(-1, 3).T
        calibration = self.calibration(kg, how.local, how.rules)
        odds = self.odds(kg, how) if calibration is not None else None
        rules = rules_of(kg) if how.rules else None
        for batch in self.score_batches(kg, source_Q, relation_Q, how.memory, how.local) if for_entities else ():
            asked = [for_entities[q] for q in batch.query.tolist()]
            answers = [batch.answers(row) for row in batch.row.tolist()]
            known = [kg.answers(source, relation) for _, source, relation in asked]
            best = []
            for (_, source, relation), own, held in zip(asked, answers, known, strict=True):
                without = held[:0] if how.include_known else held
                if rules is not None:
                    without = torch.cat((without, rules.without(source, relation, best=best_of(own, held))))
                best.append(self._ranked(own, without, how.top_k, held if how.include_known else None))
            if calibration is not None and odds is not None:
                _calibrated(calibration, odds, [query[1:] for query in asked], answers, best)
            for (position, source, relation), held, found in zip(asked, known, best, strict=True):
                why_not = rules.against_another(source, relation) if rules is not None else None
                ids = set(held.tolist())
                yield (
                    position,
                    [_completed(queries[position], kg.entities[i], rest, i in ids, why_not) for i, rest in found],
                )
        for position, (head, relation, tail) in enumerate(queries):
            if relation is None and head is not None and tail is not None:
                yield position, self._predict_relations(kg, head, tail, how)

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
        self._calibrations.setdefault(kg, {})[triples, rules] = found
        keep(self._calibration_path(kg, triples, rules), found)
        return found

    def adopt_calibration(
        self, kg: KnowledgeGraph, calibration: Calibration, local: Local = "auto", rules: bool = True
    ) -> None:
        """Use what another process found with the same model for the same graph."""
        self._calibrations.setdefault(kg, {})[self.triples(kg, local), rules] = calibration

    def calibration(self, kg: KnowledgeGraph, local: Local = "auto", rules: bool = True) -> Calibration | None:
        """What `calibrate` found for this graph, now or earlier; None if it was never called."""
        triples = self.triples(kg, local)
        known = self._calibrations.setdefault(kg, {})
        if (triples, rules) not in known:
            known[triples, rules] = kept(self._calibration_path(kg, triples, rules))
        return known[triples, rules]

    def fact_probability(
        self, kg: KnowledgeGraph, head: int, relation: int, tail: int, how: AnswerOptions
    ) -> float | None:
        """The calibrated probability of a fact by ids, the same as in every other place; None if none was fitted."""
        if self.calibration(kg, how.local, how.rules) is None:
            return None
        return float(self.fact_probabilities(kg, np.array([[head, relation, tail]]), how)[0])

    def fact_probabilities(self, kg: KnowledgeGraph, facts: IntArray, how: AnswerOptions) -> FloatArray:
        """How likely facts (head, relation, tail) by ids are, from both their ends: fitted, else by the plain odds."""
        calibration, odds = self.calibration(kg, how.local, how.rules), self.odds(kg, how)
        from_head, from_tail = facts[:, :2], np.stack([facts[:, 2], inverse_of(facts[:, 1], kg.num_relations)], axis=1)
        asked = np.unique(np.concatenate((from_head, from_tail)), axis=0)
        ends = {(end.source, end.relation): end for end in odds.ask(asked)}
        found = np.empty(len(facts))
        for at, (head, relation, tail) in enumerate(facts.tolist()):
            there = ends[head, relation].log_odds(torch.tensor([tail]))
            back = ends[tail, inverse_of(relation, kg.num_relations)].log_odds(torch.tensor([head]))
            mean = (there + back) / 2
            found[at] = (from_log_odds(mean) if calibration is None else calibration.probability(relation, mean))[0]
        return found

    def _calibration_path(self, kg: KnowledgeGraph, triples: int | None, rules: bool) -> Path:
        return calibration_path(kg, model=self.fingerprint(), local=triples, rules=rules)

    def _predict_relations(self, kg: KnowledgeGraph, head: str, tail: str, how: AnswerOptions) -> list[Prediction]:
        source, answer = kg.entity_id(head), kg.entity_id(tail)
        # Each relation is asked both ways, (head, r, ?) and (?, r, tail): the mean ranks relations clearly better than
        # one way alone (MRR .78 against .69 on 60 facts of nl-0 with the public ULTRA weights).
        num = kg.num_relations
        relation_Q = torch.arange(2 * num)
        source_Q = torch.tensor([source, answer]).repeat_interleave(num)
        answer_Q = source_Q.flip(0)
        score_Q, odds_Q = torch.zeros(2 * num), np.zeros(2 * num)
        weight_QK = torch.full((2 * num, len(self.branch_names)), 1 / max(len(self.branch_names), 1))
        calibration = self.calibration(kg, how.local, how.rules)
        odds = self.odds(kg, how) if calibration is not None else None
        basis: dict[str, Any] = {}
        for batch in self.score_batches(kg, source_Q, relation_Q, how.memory, how.local):
            for q, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
                answers = batch.answers(row)
                basis = {"local": answers.local, "is_sampled": answers.is_sampled}
                score_Q[q] = answers.at(answer_Q[q : q + 1]).float()[0]
                if (weight_1K := answers.weights(answer_Q[q : q + 1])) is not None:
                    weight_QK[q] = weight_1K[0].float()
                if odds is not None:
                    end = odds.end(int(source_Q[q]), int(relation_Q[q]), answers)
                    odds_Q[q] = end.log_odds(answer_Q[q : q + 1])[0]
        score_R, weight_RK = score_Q.view(2, num).mean(0), weight_QK.view(2, num, -1).mean(0)
        known_R = torch.tensor([bool((kg.answers(source, r) == answer).any()) for r in range(kg.num_relations)])
        if how.rules:
            score_R[[rules_of(kg).why_not(source, r, answer) is not None for r in range(num)]] = -torch.inf
        known = known_R.nonzero()[:, 0]
        without, held = (known[:0], known) if how.include_known else (known, None)
        found = self._ranked(WholeAnswers(score_R, weight_RK), without, how.top_k, held)
        if calibration is not None:
            odds_R = odds_Q.reshape(2, num).mean(0)
            for r, rest in found:
                rest["probability"] = float(calibration.probability(r, odds_R[r : r + 1])[0])
        return [_completed((head, None, tail), kg.relations[r], rest | basis, bool(known_R[r])) for r, rest in found]

    def _ranked(
        self, answers: Answers, without: Tensor, top_k: int, held: Tensor | None = None
    ) -> list[tuple[int, dict[str, Any]]]:
        """Ids of the best candidates, less those in `without`, with what a `Prediction` says of a number.

        What the graph has `held` all along takes no share from the others, so that a fact has one probability, shown
        beside known ones or alone; a known one has the share that it would have if it alone were not known.
        """
        index, best, log_total = answers.ranked(top_k, without)
        score, total = best.double(), torch.tensor(log_total, dtype=torch.double)
        if held is not None and len(held):
            total = torch.tensor(answers.log_total(torch.cat((without, held))), dtype=torch.double)
            total = torch.where(torch.isin(index, held), torch.logaddexp(score, total), total)
        share = (score - total).exp()
        names, weight_IK = self.branch_names, answers.weights(index)
        even = [1 / max(len(names), 1)] * len(names)
        weights = [even] * len(index) if weight_IK is None else weight_IK.tolist()
        basis = {"local": answers.local, "is_sampled": answers.is_sampled}
        columns = zip(index.tolist(), best.tolist(), share.tolist(), weights, strict=True)
        found = [
            (i, {"score": score, "probability": p, "branch_weights": dict(zip(names, own, strict=True)), **basis})
            for i, score, p, own in columns
        ]
        if held is not None:
            found.sort(key=_likeliest_first)
        return found


def _each(*parts: str | list[str] | None) -> list[Query]:
    """One query for each item of the list among the parts, if there is one."""
    lists = [part for part in parts if isinstance(part, list)]
    if len(lists) > 1:
        raise DataError("give a list for one of head, relation and tail; for pairs, use predict_frame or predict_many")
    each = range(len(lists[0]) if lists else 1)
    return [tuple(part[i] if isinstance(part, list) else part for part in parts) for i in each]  # type: ignore[misc]


def _calibrated(
    calibration: Calibration,
    odds: FactOdds,
    asked: list[tuple[int, int]],
    answers: list[Answers],
    best: list[list[tuple[int, dict[str, Any]]]],
) -> None:
    """Gives the best candidates of each query the probability of their facts, and puts the likeliest first."""
    facts = [(*query, i) for query, found in zip(asked, best, strict=True) for i, _ in found]
    others = odds.other_ends(np.array(facts, dtype=np.int64).reshape(-1, 3))
    for (source, relation), scores, found in zip(asked, answers, best, strict=True):
        if not found:
            continue
        from_here = odds.end(source, relation, scores).log_odds(torch.tensor([i for i, _ in found]))
        inverse, direct = odds.rules.inverse(relation), direct_of(relation, odds.rules.num_relations)
        from_there = [others[i, inverse].log_odds(torch.tensor([source]))[0] for i, _ in found]
        fitted = calibration.probability(direct, (from_here + np.array(from_there)) / 2)
        for (_, rest), p in zip(found, fitted.tolist(), strict=True):
            rest["probability"] = p
        found.sort(key=_likeliest_first)


def _likeliest_first(one: tuple[int, dict[str, Any]]) -> tuple[float, float]:
    return -one[1]["probability"], -one[1]["score"]


def _ids(kg: KnowledgeGraph, query: Query) -> tuple[int, int]:
    """Source and relation id of a query for an entity: with a tail given, the relation is read from its other end."""
    head, relation, tail = query
    relation_id = kg.relation_id(relation or "")
    if head is not None:
        return kg.entity_id(head), relation_id
    return kg.entity_id(tail or ""), inverse_of(relation_id, kg.num_relations)


def _completed(query: Query, name: str, rest: dict[str, Any], known: bool, why_not: str | None = None) -> Prediction:
    """The prediction that puts `name` into the open place of the query; a known fact needs no defence."""
    head, relation, tail = query
    return Prediction(
        name=name,
        known=known,
        head=name if head is None else head,
        relation=name if relation is None else relation,
        tail=name if tail is None else tail,
        why_not=None if known else why_not,
        **rest,
    )
