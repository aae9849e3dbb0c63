"""Projection by the model: the encoder starts from the weighted set, its scores become degrees.

Relation states are conditioned on the asked relation itself, also where it is an inverse one: unlike link prediction,
which conditions on the direct relation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gamma_kg.errors import ConfigError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.logic.project import Operand, Projector
from gamma_kg.logic.traverse import Follow
from gamma_kg.predicting.gamma import Gamma

# Degrees of a set are told apart in so many levels where facts lead on from it.
LEVELS = 10


@dataclass(frozen=True)
class StepOptions:
    """How a model's scores become degrees, and what it goes on from.

    threshold: what belongs to a set to this degree or less counts as outside it where one goes on from there.
    facts: where the graph itself leads is reached for sure, to the degree of where one comes from; else the model alone
        says so. Link prediction is trained with the asked facts taken out of the graph, so such weights need it.
    unit: the weights of a set add up to one at most, as with the one source of link prediction.
    share: the share among all entities that stands for an even chance: degree = share / (share + this). None: the
        degree is sigmoid(score), for weights that were trained by binary cross-entropy.
    """

    threshold: float = 0.0
    facts: bool = True
    unit: bool = True
    share: float | None = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ConfigError(f"the threshold of a step lies in 0..1, got {self.threshold}")
        if self.share is not None and not 0 < self.share < 1:
            raise ConfigError(f"the share that stands for an even chance lies in 0..1, got {self.share}")


# As the official executor takes a step with its two checkpoints.
ULTRAQUERY = StepOptions(threshold=0.0, facts=False, unit=False, share=None)
ULTRA = StepOptions(threshold=0.8, facts=False, unit=False, share=None)


def steps_of(gamma: Gamma) -> StepOptions:
    """The options that fit the weights: those they were saved with, those of public checkpoints, else the defaults."""
    origin = gamma.provenance
    if "steps" in origin:
        return StepOptions(**origin["steps"])
    if str(origin.get("source", "")).startswith("imported from the ULTRA checkpoint"):
        return ULTRAQUERY if origin.get("trained_for") == "queries" else ULTRA
    return StepOptions()


class ModelProjection(Projector):
    """Degrees by a model."""

    def __init__(
        self, gamma: Gamma, kg: KnowledgeGraph, options: StepOptions | None = None, *, memory: str | int | None = None
    ) -> None:
        super().__init__(kg)
        self.gamma, self.options, self.memory = gamma, options or steps_of(gamma), memory

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        starts = starts_of(operands, self.options.threshold, unit=self.options.unit)
        degree_BN = torch.empty(len(operands), self.kg.num_entities)
        for batch in self.gamma.project_batches(self.kg, starts, torch.tensor(relations), self.memory):
            degree_BN[batch.query] = degrees(batch.scores.score_BC[batch.row].float().cpu(), self.options.share)
        return with_facts(degree_BN, operands, relations, self.follow) if self.options.facts else degree_BN


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


def degrees(score_BN: Tensor, share: float | None) -> Tensor:
    """Scores as degrees of membership, (B, N)."""
    if share is None:
        return score_BN.sigmoid()
    return (score_BN - score_BN.logsumexp(1, keepdim=True) - math.log(share)).sigmoid()


def starts_of(operands: Sequence[Operand], threshold: float, *, unit: bool = False) -> Starts:
    """The weighted starts of a batch: the entity itself, or what belongs to the set to more than the threshold."""
    if all(isinstance(operand, int) for operand in operands):
        return Starts.single(torch.tensor(operands, dtype=torch.long))
    nodes, weights = [], []
    for operand in operands:
        if isinstance(operand, Tensor):
            nodes.append((operand > threshold).nonzero()[:, 0])
            weight = operand[nodes[-1]]
            weights.append(weight / weight.sum().clamp_min(1) if unit else weight)
        else:
            nodes.append(torch.tensor([operand]))
            weights.append(torch.ones(1))
    sizes = torch.tensor([0, *(len(node) for node in nodes)])
    return Starts(torch.cat(nodes), torch.cat(weights), sizes.cumsum(0))
