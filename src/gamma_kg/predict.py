"""Gamma: the model with names on it. Names in, ranked names out."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from gamma_kg.calibrate import Calibration, calibrate
from gamma_kg.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from gamma_kg.config import GammaConfig, preset
from gamma_kg.errors import DataError
from gamma_kg.explain import Explanation, explain
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.inference import RelationCache, ScoreBatch, score_batches
from gamma_kg.nn.model import GammaModel

Query = tuple[str | None, str | None, str | None]  # head, relation, tail; the one to be predicted is None
BUNDLED_WEIGHTS = "weights/gamma.safetensors"


@dataclass(frozen=True)
class Prediction:
    """One proposed fact. `name` is the part that was asked for; the fact as a whole is (head, relation, tail)."""

    name: str
    score: float
    probability: (
        float  # share among all candidates that were ranked; after `calibrate`, how often such an answer is right
    )
    known: bool  # the graph already holds this fact
    branch_weights: dict[str, float]  # how much each geometry counted
    head: str
    relation: str
    tail: str


class Gamma:
    """A pretrained model that answers queries on any graph, without training."""

    def __init__(self, model: GammaModel, provenance: dict[str, Any] | None = None) -> None:
        self.model = model.eval()
        self.provenance = dict(provenance or {})
        self._cache = RelationCache()
        self._calibrations: weakref.WeakKeyDictionary[KnowledgeGraph, Calibration] = weakref.WeakKeyDictionary()

    @classmethod
    def from_pretrained(cls, path: str | Path | None = None) -> Self:
        """The bundled weights, or those of a checkpoint file."""
        if path is not None:
            return cls.from_checkpoint(load_checkpoint(path))
        with as_file(files("gamma_kg") / BUNDLED_WEIGHTS) as bundled:
            return cls.from_checkpoint(load_checkpoint(bundled))

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        return cls(checkpoint.build(), checkpoint.provenance)

    @classmethod
    def from_preset(cls, name: str, seed: int = 0) -> Self:
        """An untrained model of a published variant; the same seed gives the same weights."""
        return cls.from_config(preset(name), seed)

    @classmethod
    def from_config(cls, config: GammaConfig, seed: int = 0) -> Self:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(GammaModel(config), {"source": f"untrained, seed {seed}"})

    def save(self, path: str | Path) -> None:
        save_checkpoint(path, self.model, self.provenance)

    def to(self, device: torch.device | str) -> Self:
        self.model.to(device)
        return self

    @property
    def config(self) -> GammaConfig:
        return self.model.config

    @property
    def num_parameters(self) -> int:
        return self.model.num_parameters

    def predict(
        self,
        kg: KnowledgeGraph,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        top_k: int = 10,
        include_known: bool = False,
        memory: str | int | None = None,
    ) -> list[Prediction]:
        """The best completions of a fact of which two parts are given, best first.

        Facts that the graph already holds are left out, unless `include_known`.
        """
        query = (head, relation, tail)
        return next(self.predict_many(kg, [query], top_k=top_k, include_known=include_known, memory=memory))[1]

    def predict_many(
        self,
        kg: KnowledgeGraph,
        queries: Sequence[Query],
        *,
        top_k: int = 10,
        include_known: bool = False,
        memory: str | int | None = None,
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """The same for many facts (head, relation, tail) with None for the part to predict, in any order.

        Yields the position of a query and its predictions, as batches get done.
        """
        if top_k < 1:
            raise DataError(f"top_k must be at least 1, got {top_k}")
        if any(query.count(None) != 1 for query in queries):
            raise DataError("give exactly two of head, relation and tail: the third is predicted")
        asked: list[tuple[int, int, int]] = []  # position, source, relation id
        for position, (head, relation, tail) in enumerate(queries):
            if relation is not None:
                relation_id = kg.relation_id(relation)
                is_head_given = head is not None
                source = kg.entity_id(head or tail or "")
                asked.append((position, source, relation_id + (0 if is_head_given else kg.num_relations)))
        position_Q, source_Q, relation_Q = torch.tensor(asked, dtype=torch.long).reshape(-1, 3).T
        for batch in self.score_batches(kg, source_Q, relation_Q, memory) if asked else ():
            for q, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
                weight_NK = None if batch.scores.weight_BCK is None else batch.scores.weight_BCK[row].cpu()
                source, query_relation = int(source_Q[q]), int(relation_Q[q])
                known_N = torch.zeros(kg.num_entities, dtype=torch.bool)
                known_N[kg.answers(source, query_relation)] = True
                position = int(position_Q[q])
                head, relation, tail = queries[position]
                assert relation is not None
                ranked = self._ranked(
                    batch.scores.score_BC[row].cpu(),
                    known_N,
                    weight_NK,
                    top_k,
                    include_known,
                    self.calibration(kg),
                    query_relation,
                )
                yield (
                    position,
                    [
                        Prediction(
                            kg.entities[i],
                            head=head or kg.entities[i],
                            relation=relation,
                            tail=tail or kg.entities[i],
                            **rest,
                        )
                        for i, rest in ranked
                    ],
                )
        for position, (head, relation, tail) in enumerate(queries):
            if relation is None and head is not None and tail is not None:
                yield position, self._predict_relations(kg, head, tail, top_k, include_known, memory)

    def scores(
        self,
        kg: KnowledgeGraph,
        sources: Sequence[int] | Tensor,
        relations: Sequence[int] | Tensor,
        memory: str | int | None = None,
    ) -> Tensor:
        """Scores of all entities for queries by id, [queries, num_entities].

        Relation ids of `num_relations` and more are inverses: they ask for the head of a fact.
        """
        source_Q, relation_Q = torch.as_tensor(sources).long(), torch.as_tensor(relations).long()
        out = torch.zeros(len(source_Q), kg.num_entities, dtype=self.model.score.out.weight.dtype)
        for batch in self.score_batches(kg, source_Q, relation_Q, memory=memory):
            out[batch.query] = batch.scores.score_BC[batch.row].cpu()
        return out

    def score_batches(
        self, kg: KnowledgeGraph, source_Q: Tensor, relation_Q: Tensor, memory: str | int | None = None
    ) -> Iterator[ScoreBatch]:
        """The same, a batch at a time, for more queries than fit into memory."""
        return score_batches(self.model, kg, source_Q, relation_Q, self._cache, memory=memory)

    def calibrate(self, kg: KnowledgeGraph, *, share: float = 0.1, max_hidden: int = 500, seed: int = 0) -> Calibration:
        """Fits probabilities to this graph: hides some of its facts and sees how often answers are right.

        From then on the predictions for `kg` carry these probabilities.
        """
        self._calibrations[kg] = calibrate(self.score_batches, kg, share=share, max_hidden=max_hidden, seed=seed)
        return self._calibrations[kg]

    def calibration(self, kg: KnowledgeGraph) -> Calibration | None:
        """What `calibrate` found for this graph, if it was called."""
        return self._calibrations.get(kg)

    def explain(
        self, kg: KnowledgeGraph, *, head: str, relation: str, tail: str, num_paths: int = 5, num_facts: int = 5
    ) -> Explanation:
        """Why the model believes (head, relation, tail): paths, branches, and the facts it rests on."""
        return explain(
            self.model,
            kg,
            head,
            relation,
            tail,
            num_paths=num_paths,
            num_facts=num_facts,
            branch_names=branch_names(self.config),
        )

    def _predict_relations(
        self,
        kg: KnowledgeGraph,
        head: str,
        tail: str,
        top_k: int,
        include_known: bool,
        memory: str | int | None,
    ) -> list[Prediction]:
        source, answer = kg.entity_id(head), kg.entity_id(tail)
        # Each relation is asked both ways, (head, r, ?) and (?, r, tail): the mean ranks relations clearly better than
        # one way alone (MRR .78 against .69 on 60 facts of nl-0 with the public ULTRA weights).
        num = kg.num_relations
        relation_Q = torch.arange(2 * num)
        source_Q = torch.tensor([source, answer]).repeat_interleave(num)
        answer_Q = source_Q.flip(0)
        score_Q = torch.zeros(2 * num)
        weight_QK = torch.full((2 * num, self.config.num_branches), 1 / self.config.num_branches)
        for batch in self.score_batches(kg, source_Q, relation_Q, memory):
            score_Q[batch.query] = batch.scores.score_BC[batch.row, answer_Q[batch.query]].float().cpu()
            if batch.scores.weight_BCK is not None:
                weight_QK[batch.query] = batch.scores.weight_BCK[batch.row, answer_Q[batch.query]].float().cpu()
        score_R, weight_RK = score_Q.view(2, num).mean(0), weight_QK.view(2, num, -1).mean(0)
        known_R = torch.tensor([bool((kg.answers(source, r) == answer).any()) for r in range(kg.num_relations)])
        return [
            Prediction(name=kg.relations[i], head=head, relation=kg.relations[i], tail=tail, **rest)
            for i, rest in self._ranked(score_R, known_R, weight_RK, top_k, include_known)
        ]

    def _ranked(
        self,
        score_N: Tensor,
        known_N: Tensor,
        weight_NK: Tensor | None,
        top_k: int,
        include_known: bool,
        calibration: Calibration | None = None,
        relation: int = 0,
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Ids of the best candidates with all that a `Prediction` says of a number; nothing else is sorted."""
        candidates = score_N if include_known else score_N.masked_fill(known_N, -torch.inf)
        count = min(top_k, int(candidates.isfinite().sum()))
        best, index = candidates.topk(count)
        log_share = best.double() - candidates.double().logsumexp(0)
        probability = log_share.exp()
        if calibration is not None:
            probability = torch.from_numpy(calibration.probability(relation, log_share.numpy()))
        names = branch_names(self.config)
        for score, p, i in zip(best.tolist(), probability.tolist(), index.tolist(), strict=True):
            weights = [1 / len(names)] * len(names) if weight_NK is None else weight_NK[i].tolist()
            yield (
                i,
                {
                    "score": score,
                    "probability": p,
                    "known": bool(known_N[i]),
                    "branch_weights": dict(zip(names, weights, strict=True)),
                },
            )

    def __repr__(self) -> str:
        return f"Gamma({' & '.join(self.config.branches)}, {self.num_parameters:,} parameters)"


def branch_names(config: GammaConfig) -> list[str]:
    """One name per branch; a second branch of the same algebra gets a number."""
    seen: dict[str, int] = {}
    names = []
    for name in config.branches:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return names
