"""Names in, ranked names out, for anything that scores entities: a `Gamma`, or a baseline."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import inverse_of
from gamma_kg.nn.answers import Answers, WholeAnswers
from gamma_kg.predicting.calibration import Calibration, calibrate
from gamma_kg.predicting.frames import Predictions, predict_frame
from gamma_kg.predicting.inference import ScoreBatch
from gamma_kg.predicting.switch import Local, local_triples, said
from gamma_kg.rules import are_sought, rules_of

Query = tuple[str | None, str | None, str | None]  # head, relation, tail; the one to be predicted is None


@dataclass(frozen=True)
class Prediction:
    """One proposed fact. `name` is the part that was asked for; the fact as a whole is (head, relation, tail)."""

    name: str
    score: float
    probability: float  # share among all candidates; after `calibrate`, how often such an answer is right
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
        # Per graph and budget of triples: answers from a neighbourhood have a map of their own.
        self._calibrations: weakref.WeakKeyDictionary[KnowledgeGraph, dict[int | None, Calibration]] = (
            weakref.WeakKeyDictionary()
        )

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
        or tails) one such list each, in their order. Options are those of `predict_many`: `top_k`, `include_known` …

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
        *,
        top_k: int = 10,
        include_known: bool = False,
        rules: bool = True,
        memory: str | int | None = None,
        local: Local = "auto",
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """The same for many facts (head, relation, tail) with None for the part to predict, in any order.

        Yields the position of a query and its predictions, as batches get done.
        """
        if top_k < 1:
            raise DataError(f"top_k must be at least 1, got {top_k}")
        if any(query.count(None) != 1 for query in queries):
            raise DataError("give exactly two of head, relation and tail: the third is predicted")
        for_entities = [(at, *_ids(kg, query)) for at, query in enumerate(queries) if query[1] is not None]
        position_Q, source_Q, relation_Q = torch.tensor(for_entities, dtype=torch.long).reshape(-1, 3).T
        calibration = self.calibration(kg, local)
        rules = rules and are_sought(kg)
        for batch in self.score_batches(kg, source_Q, relation_Q, memory, local) if for_entities else ():
            for q, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
                asked = int(source_Q[q]), int(relation_Q[q])
                known, blocked, why_not = kg.answers(*asked), None, None
                if rules:
                    blocked = torch.from_numpy(rules_of(kg).blocked(*asked)).nonzero()[:, 0]
                    why_not = rules_of(kg).against_another(*asked)
                without = known[:0] if include_known else known
                if blocked is not None:
                    without = torch.cat((without, blocked)).unique()
                best = self._ranked(batch.answers(row), known, without, top_k, calibration, asked[1])
                position = int(position_Q[q])
                yield position, [_completed(queries[position], kg.entities[i], rest, why_not) for i, rest in best]
        for position, (head, relation, tail) in enumerate(queries):
            if relation is None and head is not None and tail is not None:
                yield position, self._predict_relations(kg, head, tail, top_k, include_known, rules, memory, local)

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

    def calibrate(
        self,
        kg: KnowledgeGraph,
        *,
        share: float = 0.1,
        max_hidden: int = 500,
        seed: int = 0,
        local: Local = "auto",
    ) -> Calibration:
        """Fits probabilities to this graph: hides some of its facts and sees how often answers are right.

        From then on the predictions for `kg` with this `local` carry these probabilities.
        """
        triples = local_triples(kg, local)  # of the whole graph: without some facts, "auto" might mean something else
        score_queries = partial(self.score_batches, local=said(triples))
        found = calibrate(score_queries, kg, share=share, max_hidden=max_hidden, seed=seed)
        self._calibrations.setdefault(kg, {})[triples] = found
        return found

    def calibration(self, kg: KnowledgeGraph, local: Local = "auto") -> Calibration | None:
        """What `calibrate` found for this graph, if it was called."""
        return self._calibrations.get(kg, {}).get(local_triples(kg, local))

    def _predict_relations(
        self,
        kg: KnowledgeGraph,
        head: str,
        tail: str,
        top_k: int,
        include_known: bool,
        rules: bool,
        memory: str | int | None,
        local: Local,
    ) -> list[Prediction]:
        source, answer = kg.entity_id(head), kg.entity_id(tail)
        # Each relation is asked both ways, (head, r, ?) and (?, r, tail): the mean ranks relations clearly better than
        # one way alone (MRR .78 against .69 on 60 facts of nl-0 with the public ULTRA weights).
        num = kg.num_relations
        relation_Q = torch.arange(2 * num)
        source_Q = torch.tensor([source, answer]).repeat_interleave(num)
        answer_Q = source_Q.flip(0)
        score_Q = torch.zeros(2 * num)
        weight_QK = torch.full((2 * num, len(self.branch_names)), 1 / max(len(self.branch_names), 1))
        for batch in self.score_batches(kg, source_Q, relation_Q, memory, local):
            for q, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
                answers = batch.answers(row)
                score_Q[q] = answers.at(answer_Q[q : q + 1]).float()[0]
                if (weight_1K := answers.weights(answer_Q[q : q + 1])) is not None:
                    weight_QK[q] = weight_1K[0].float()
        score_R, weight_RK = score_Q.view(2, num).mean(0), weight_QK.view(2, num, -1).mean(0)
        known_R = torch.tensor([bool((kg.answers(source, r) == answer).any()) for r in range(kg.num_relations)])
        if rules:
            score_R[[rules_of(kg).why_not(source, r, answer) is not None for r in range(num)]] = -torch.inf
        of_relations, known = WholeAnswers(score_R, weight_RK), known_R.nonzero()[:, 0]
        basis = {"local": answers.local, "is_sampled": answers.is_sampled} if num else {}
        return [
            _completed((head, None, tail), kg.relations[i], rest | basis)
            for i, rest in self._ranked(of_relations, known, known[:0] if include_known else known, top_k)
        ]

    def _ranked(
        self,
        answers: Answers,
        known: Tensor,
        without: Tensor,
        top_k: int,
        calibration: Calibration | None = None,
        relation: int = 0,
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Ids of the best candidates, less those in `without`, with all that a `Prediction` says of a number."""
        index, best = answers.best(top_k, without)
        log_share = best.double() - answers.log_total(without)
        probability = log_share.exp()
        if calibration is not None:
            probability = torch.from_numpy(calibration.probability(relation, log_share.numpy()))
        names, weight_IK = self.branch_names, answers.weights(index)
        is_known = torch.isin(index, known)
        for at, (score, p, i) in enumerate(zip(best.tolist(), probability.tolist(), index.tolist(), strict=True)):
            weights = [1 / max(len(names), 1)] * len(names) if weight_IK is None else weight_IK[at].tolist()
            yield (
                i,
                {
                    "score": score,
                    "probability": p,
                    "known": bool(is_known[at]),
                    "branch_weights": dict(zip(names, weights, strict=True)),
                    "local": answers.local,
                    "is_sampled": answers.is_sampled,
                },
            )


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


def _completed(query: Query, name: str, rest: dict[str, Any], why_not: str | None = None) -> Prediction:
    """The prediction that puts `name` into the open place of the query; a known fact needs no defence."""
    head, relation, tail = (name if part is None else part for part in query)
    against = None if rest["known"] else why_not
    return Prediction(name=name, head=head, relation=relation, tail=tail, why_not=against, **rest)
