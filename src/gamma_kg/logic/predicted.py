"""Projection by the model: the encoder starts from the weighted set, its scores become degrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from gamma_kg.errors import ConfigError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.graph.twins import twins_of
from gamma_kg.logic.project import Operand, Projector
from gamma_kg.logic.traverse import Follow
from gamma_kg.logic.usual_answers import usual_answers
from gamma_kg.nn.provenance import origin_of
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.switch import Local, local_triples, said, triples_for
from gamma_kg.rules import rules_of

# Degrees of a set are told apart in so many levels where facts lead on from it.
LEVELS = 10
# On a neighbourhood a step goes on from the best so many of a set: it grows around all of them together.
LOCAL_STARTS = 128
# The steps of many queries share a pass over the whole graph, where a layer takes at most this work (as
# `predicting/switch.py` counts it). A step from a set needs more of the graph than one from an entity: the whole of it
# up to more work, then a wider neighbourhood. docs/logical-queries.md has the measurements.
CHEAP, CHEAP_FROM_SETS, WIDER = 1_000_000, 5_000_000, 3
# The likely members of a set, those with this part of the highest degree, rule an answer out if all of them do; of more
# than so many one always leads there.
LIKELY, MOST_LIKELY = 0.1, 16


@dataclass(frozen=True)
class StepOptions:
    """How a model's scores become degrees, and what it goes on from.

    threshold: what belongs to a set to this degree or less counts as outside it where one goes on from there.
    facts: where the graph itself leads is reached for sure, to the degree of where one comes from; else the model alone
        says so. Link prediction is trained with the asked facts taken out of the graph, so such weights need it.
    unit: the weights of a set add up to one at most, as with the one source of link prediction.
    share: the share of the softmax over all entities that stands for an even chance: degree = x / (x + this). None: the
        degree is sigmoid(score), for weights that were trained by binary cross-entropy.
    usual: x is the share times the answers that the relation usually has, which share it; else the share itself.
    direct: relation states are conditioned on the direct relation also where heads are asked for, as link prediction is
        trained. Else on the asked relation itself, as the official executor does it.
    """

    threshold: float = 0.0
    facts: bool = True
    unit: bool = True
    share: float | None = 0.5
    usual: bool = True
    direct: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ConfigError(f"the threshold of a step lies in 0..1, got {self.threshold}")
        if self.share is not None and not 0 < self.share < 1:
            raise ConfigError(f"the share that stands for an even chance lies in 0..1, got {self.share}")


# As the official executor takes a step with its two checkpoints.
ULTRAQUERY = StepOptions(threshold=0.0, facts=False, unit=False, share=None, direct=False)
ULTRA = StepOptions(threshold=0.8, facts=False, unit=False, share=None, direct=False)


def steps_of(gamma: Gamma) -> StepOptions:
    """The options that fit the weights: those they were saved with, those of public checkpoints, else the defaults."""
    origin = gamma.provenance
    if "steps" in origin:
        return StepOptions(**origin["steps"])
    if origin_of(origin).startswith("imported from the ULTRA checkpoint"):
        return ULTRAQUERY if origin.get("trained_for") == "queries" else ULTRA
    return StepOptions()


class ModelProjection(Projector):
    """Degrees by a model; with `rules`, nothing is reached by a step that contradicts what the graph shows."""

    def __init__(
        self,
        gamma: Gamma,
        kg: KnowledgeGraph,
        options: StepOptions | None = None,
        *,
        memory: str | int | None = None,
        local: Local = "auto",
        rules: bool = False,
    ) -> None:
        super().__init__(kg)
        self._uses_rules = rules
        self.gamma, self.options, self.memory = gamma, options or steps_of(gamma), memory
        # The triples of a neighbourhood, of a step from an entity and of one from a set; None: the whole graph.
        self.local: int | None = triples_for(kg.num_entities, kg.num_triples, local, CHEAP)
        self.local_from_sets: int | None = triples_from_sets(kg, local)

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        triples = self.local if all(isinstance(operand, int) for operand in operands) else self.local_from_sets
        most = None if triples is None else LOCAL_STARTS
        starts = starts_of(operands, self.options.threshold, unit=self.options.unit, most=most)
        degree_BN = torch.empty(len(operands), self.kg.num_entities)
        asked, local, on_asked = torch.tensor(relations), said(triples), not self.options.direct
        twins = twins_of(self.kg.edges) if triples is None else None
        batches = self.gamma.score_batches(self.kg, starts, asked, self.memory, local, on_asked=on_asked, twins=twins)
        for batch in batches:
            score_BN = batch.dense()[batch.row].float().cpu()
            degree_BN[batch.query] = degrees(score_BN, even_chance(self.kg, asked[batch.query], self.options))
        if self._uses_rules:
            for degree_N, operand, relation in zip(degree_BN, operands, relations, strict=True):
                degree_N[self._against(operand, relation, degree_N)] = 0
        return with_facts(degree_BN, operands, relations, self.follow) if self.options.facts else degree_BN

    def _against(self, operand: Operand, relation: int, degree_N: Tensor) -> Tensor:
        """Entities that no likely member of the operand can lead to, int64."""
        if isinstance(operand, int):
            likely = [operand]
        else:
            likely = (operand >= LIKELY * operand.max().clamp_min(1e-9)).nonzero()[:, 0].tolist()
        if not 0 < len(likely) <= MOST_LIKELY:
            return torch.empty(0, dtype=torch.long)

        def best(count: int) -> Tensor:
            return degree_N.topk(min(count, len(degree_N))).indices

        found = [rules_of(self.kg).without(entity, relation, best, implied=False).numpy() for entity in likely]
        return torch.from_numpy(reduce(np.intersect1d, found))


def triples_from_sets(kg: KnowledgeGraph, local: Local) -> int | None:
    """The triples of the neighbourhood of a set; None: the whole graph. A number of the user's is taken as it is."""
    if local != "auto":
        return local_triples(kg, local)
    triples = triples_for(kg.num_entities, kg.num_triples, "auto", CHEAP_FROM_SETS)
    return None if triples is None else WIDER * triples


def with_facts(degree_BN: Tensor, operands: Sequence[Operand], relations: Sequence[int], follow: Follow) -> Tensor:
    """Degrees raised where facts lead: to the degree of the best entity they lead from, rounded down to a level."""
    certain_BN = torch.zeros(degree_BN.shape)
    for certain_N, operand, relation in zip(certain_BN, operands, relations, strict=True):
        if isinstance(operand, int):
            certain_N[torch.from_numpy(follow(np.array([operand]), relation))] = 1
            continue
        for level in range(1, LEVELS + 1):  # from the least up, so that the best stays
            start = (operand.detach() * LEVELS >= level).nonzero()[:, 0].numpy()
            if not len(start):
                break
            certain_N[torch.from_numpy(follow(start, relation))] = level / LEVELS
    return torch.maximum(degree_BN, certain_BN)


def even_chance(kg: KnowledgeGraph, relation_B: Tensor, options: StepOptions) -> Tensor | None:
    """The share that stands for an even chance of each relation, (B,); None where scores are log-odds themselves."""
    if options.share is None:
        return None
    return options.share / (usual_answers(kg)[relation_B] if options.usual else torch.ones(len(relation_B)))


def degrees(score_BN: Tensor, share_B: Tensor | None) -> Tensor:
    """Scores as degrees of membership, (B, N): a half at the given share of the softmax; sigmoid(score) without."""
    if share_B is None:
        return score_BN.sigmoid()
    return (score_BN - score_BN.logsumexp(1, keepdim=True) - share_B.log()[:, None]).sigmoid()


def starts_of(operands: Sequence[Operand], threshold: float, *, unit: bool = False, most: int | None = None) -> Starts:
    """The weighted starts of a batch: the entity itself, or the (best) members of a set above the threshold."""
    if all(isinstance(operand, int) for operand in operands):
        return Starts.single(torch.tensor(operands, dtype=torch.long))
    nodes, weights = [], []
    for operand in operands:
        if isinstance(operand, Tensor):
            nodes.append(_members(operand, threshold, most))
            weight = operand[nodes[-1]]
            weights.append(weight / weight.sum().clamp_min(1) if unit else weight)
        else:
            nodes.append(torch.tensor([operand]))
            weights.append(torch.ones(1))
    sizes = torch.tensor([0, *(len(node) for node in nodes)])
    return Starts(torch.cat(nodes), torch.cat(weights), sizes.cumsum(0))


def _members(degree_N: Tensor, threshold: float, most: int | None) -> Tensor:
    """The entities above the threshold, or the best `most` of them; ascending."""
    if most is not None and most < len(degree_N):
        best = degree_N.topk(most)
        return best.indices[best.values > threshold].sort().values
    return (degree_N > threshold).nonzero()[:, 0]
