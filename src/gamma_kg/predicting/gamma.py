"""Gamma: the pretrained model, loaded and ready. `predict` itself is that of every `Predictor`."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from gamma_kg.errors import CheckpointError
from gamma_kg.explain import Explanation, explain
from gamma_kg.explain.asked import Neighbourhood
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.graph.twins import Twins
from gamma_kg.machine.device import choose_device
from gamma_kg.machine.memory import budget
from gamma_kg.nn.checkpoint import Checkpoint, save_checkpoint
from gamma_kg.nn.config import GammaConfig, preset
from gamma_kg.nn.ensemble import GammaEnsemble
from gamma_kg.nn.model import GammaModel
from gamma_kg.nn.provenance import in_short
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.background import BackgroundCache
from gamma_kg.predicting.home import warn_if_elsewhere
from gamma_kg.predicting.inference import score_batches
from gamma_kg.predicting.local import local_batches
from gamma_kg.predicting.pair_scores import PairScores, pair_near_both
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.predicting.relation_cache import RelationCache, relation_states
from gamma_kg.predicting.score_batch import ScoreBatch
from gamma_kg.predicting.switch import Local, local_triples, neighbourhood_sizes
from gamma_kg.predicting.weights import load_weights_of, shares_of
from gamma_kg.rules import rules_of
from gamma_kg.rules.reasons import ReasonFinder

if TYPE_CHECKING:
    from gamma_kg.training.adapt import Adapted


class Gamma(Predictor):
    """A pretrained model that answers queries on any graph, without training."""

    def __init__(self, model: GammaModel, provenance: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.model = model.eval()
        self.provenance = dict(provenance or {})
        self._cache, self._backgrounds = RelationCache(), BackgroundCache()
        self.branch_names = branch_names(model.config)
        self._seen: weakref.WeakKeyDictionary[KnowledgeGraph, bool] = weakref.WeakKeyDictionary()

    @classmethod
    def from_pretrained(cls, name: str | Path | None = None, *, device: str | torch.device = "cpu") -> Self:
        """The bundled weights, others by their name (`gamma_kg.predicting.weights`), or those of a checkpoint file.

        `device`: "cpu", "cuda" (a GPU, which must be there) or "auto" (a GPU where there is one).
        """
        return cls.from_checkpoints(load_weights_of(name), shares_of(name)).to(device)

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        return cls(checkpoint.build(), checkpoint.provenance)

    @classmethod
    def from_checkpoints(cls, checkpoints: Sequence[Checkpoint], shares: Sequence[float] | None = None) -> Self:
        """One model, or the mean of several (`nn/ensemble.py`), each with its share."""
        if len(checkpoints) == 1:
            return cls.from_checkpoint(checkpoints[0])
        kinds = {checkpoint.config.relation_graph for checkpoint in checkpoints}
        same = [c.with_pairs() for c in checkpoints] if "pairs" in kinds else checkpoints
        members = [in_short(checkpoint.provenance) for checkpoint in checkpoints]
        return cls(GammaEnsemble([checkpoint.build() for checkpoint in same], shares), {"mean_of": members})

    @classmethod
    def from_preset(cls, name: str, seed: int = 0) -> Self:
        """An untrained model of a published variant; the same seed gives the same weights."""
        return cls.from_config(preset(name), seed)

    @classmethod
    def from_config(cls, config: GammaConfig, seed: int = 0) -> Self:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(GammaModel(config), {"origin": f"untrained, seed {seed}"})

    def save(self, path: str | Path) -> None:
        if isinstance(self.model, GammaEnsemble):
            raise CheckpointError("an ensemble is no single file: save its models one by one")
        save_checkpoint(path, self.model, self.provenance)

    def to(self, device: torch.device | str) -> Self:
        """Compute there from now on; names as for `from_pretrained`."""
        self.model.to(choose_device(device))
        return self

    @property
    def device(self) -> torch.device:
        return self.model.score.out.weight.device

    @property
    def config(self) -> GammaConfig:
        return self.model.config

    @property
    def num_parameters(self) -> int:
        return self.model.num_parameters

    def score_batches(
        self,
        kg: KnowledgeGraph,
        start_Q: Starts | Tensor,
        relation_Q: Tensor,
        memory: str | int | None = None,
        local: Local = "auto",
        *,
        on_asked: bool = False,
        twins: Twins | None = None,
    ) -> Iterator[ScoreBatch]:
        """Scores of all entities for queries by id, a batch at a time: for more queries than fit into memory.

        A query starts at one entity (a tensor of ids), or at a weighted set of them (`Starts`), as the steps of a
        logical query do. `on_asked` and `twins` as for `predicting.inference.score_batches`.
        """
        self._look_where_we_are(kg)
        triples = local_triples(kg, local)
        if triples is None:
            how: dict[str, Any] = {"memory": memory, "on_asked": on_asked, "twins": twins}
            return score_batches(self.model, kg, start_Q, relation_Q, self._cache, **how)
        caches = self._cache, self._backgrounds
        return local_batches(self.model, kg, start_Q, relation_Q, triples, *caches, memory=memory, on_asked=on_asked)

    def pair_scores(
        self, kg: KnowledgeGraph, head: int, relation_A: Tensor, tail: int, how: AnswerOptions
    ) -> PairScores:
        triples = local_triples(kg, how.local)
        if triples is None:
            return super().pair_scores(kg, head, relation_A, tail, how)
        self._look_where_we_are(kg)
        return pair_near_both(self.model, kg, head, relation_A, tail, triples, self._cache, how.memory)

    def _look_where_we_are(self, kg: KnowledgeGraph) -> None:
        if "adapted" in self.provenance and self._seen.get(kg) is None:
            self._seen[kg] = True
            warn_if_elsewhere(self.provenance, kg)

    def adapt(self, kg: KnowledgeGraph, minutes: float = 5.0, **options: Any) -> Adapted:
        """Train a copy of this model on the graph's own facts; its result has the new weights only if they are better.

        Options as for `gamma_kg.training.adapt.adapt`: `folder` keeps the run, `resume` goes on with it.
        """
        # Training stands above predicting: a door for users, looked up when it is used; nothing here depends on it.
        found: Adapted = import_module("gamma_kg.training.adapt").adapt(self, kg, minutes=minutes, **options)
        return found

    def triples(self, kg: KnowledgeGraph, local: Local) -> int | None:
        return local_triples(kg, local)

    def fingerprint(self) -> str:
        """sha256 over config and weights: the same for the same model, wherever its file lies."""
        digest = hashlib.sha256(self.config.model_dump_json().encode())
        for key, tensor in sorted(self.model.state_dict().items()):
            digest.update(key.encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def explain(
        self,
        kg: KnowledgeGraph,
        *,
        head: str,
        relation: str,
        tail: str,
        num_paths: int = 5,
        num_facts: int = 5,
        without: Iterable[tuple[str, str, str]] = (),
        rules: bool = True,
        local: Local = "auto",
        memory: str | int | None = None,
    ) -> Explanation:
        """Why the model believes (head, relation, tail): paths, branches, and the facts it rests on.

        With facts `without`: what it would believe if these were gone. With `rules`: rules of the graph that speak for
        the fact, and what its patterns say against it. `local` as in `predict`, whose answer this is.
        """
        if isinstance(self.model, GammaEnsemble):
            raise CheckpointError("an ensemble has no single explanation: ask one of its models")
        model, triples, memory_bytes = self.model, local_triples(kg, local), budget(memory, self.device)

        def neighbourhood(head_id: int, relation_id: int) -> Neighbourhood | None:
            if triples is None:
                return None
            background = self._backgrounds.of(model, kg, relation_id, self._cache, memory_bytes)
            facts_of_head = int(kg.edges.degrees(torch.tensor([head_id])))
            return Neighbourhood(neighbourhood_sizes(kg, triples, facts_of_head), background)

        fact = kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail)
        without = list(without)
        found = explain(
            self.model,
            kg,
            head,
            relation,
            tail,
            num_paths=num_paths,
            num_facts=num_facts,
            branch_names=list(self.branch_names),
            without=without,
            rivals_less=rules_of(kg).without(*fact[:2]) if rules else None,
            relations=lambda r: relation_states(model, kg, torch.tensor([r]), self._cache, memory_bytes),
            neighbourhood=neighbourhood,
        )
        # With facts taken away the map that was fitted to the whole graph says nothing.
        how = AnswerOptions(rules=rules, memory=memory, local=local)
        fitted = None if without else self.fact_probability(kg, *fact, how)
        if fitted is not None:
            found = replace(found, probability=fitted, is_calibrated=True)
        if not rules:
            return found
        return replace(found, reasons=tuple(ReasonFinder(kg).find(*fact)), why_not=rules_of(kg).why_not(*fact))

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
