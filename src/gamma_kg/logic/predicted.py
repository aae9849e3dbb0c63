"""Projection by the model: the encoder starts from the weighted set, sigmoid(score) is the degree.

Relation states are conditioned on the asked relation itself, also where it is an inverse one: unlike link prediction,
which conditions on the direct relation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.logic.project import Operand, Projector
from gamma_kg.predicting.gamma import Gamma


class Prediction(Projector):
    """Degrees by a model.

    `threshold`: what belongs to a set to this degree or less counts as outside it where one goes on from there; weights
    of link prediction, which never saw several sources, need it. `facts`: where the graph itself leads is reached for
    sure (to the degree of where one comes from); without it, the model alone says so.
    """

    def __init__(
        self,
        gamma: Gamma,
        kg: KnowledgeGraph,
        *,
        threshold: float = 0.0,
        facts: bool = False,
        memory: str | int | None = None,
    ) -> None:
        super().__init__(kg)
        self.gamma, self.threshold, self.facts, self.memory = gamma, threshold, facts, memory

    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        starts = starts_of(operands, self.threshold)
        degree_BN = torch.empty(len(operands), self.kg.num_entities)
        for batch in self.gamma.project_batches(self.kg, starts, torch.tensor(relations), self.memory):
            degree_BN[batch.query] = batch.scores.score_BC[batch.row].sigmoid().float().cpu()
        if self.facts:
            for degree_N, operand, relation in zip(degree_BN, operands, relations, strict=True):
                self._believe(degree_N, operand, relation)
        return degree_BN

    def _believe(self, degree_N: Tensor, operand: Operand, relation: int) -> None:
        """Raise the degree of what is reached by facts to that of the best entity it is reached from."""
        if isinstance(operand, int):
            degree_N[torch.from_numpy(self.follow(np.array([operand]), relation))] = 1
            return
        # From the least to the best level, so that the best one stays; ten levels are fine enough.
        for level in torch.linspace(0.1, 1.0, 10).tolist():
            start = (operand >= level - 1e-6).nonzero()[:, 0].numpy()
            reached = torch.from_numpy(self.follow(start, relation))
            degree_N[reached] = degree_N[reached].clamp_min(level)


def starts_of(operands: Sequence[Operand], threshold: float) -> Starts:
    """The weighted starts of a batch: the entity itself, or what belongs to the set to more than the threshold."""
    if all(isinstance(operand, int) for operand in operands):
        return Starts.single(torch.tensor(operands, dtype=torch.long))
    nodes, weights = [], []
    for operand in operands:
        if isinstance(operand, Tensor):
            nodes.append((operand > threshold).nonzero()[:, 0])
            weights.append(operand[nodes[-1]])
        else:
            nodes.append(torch.tensor([operand]))
            weights.append(torch.ones(1))
    sizes = torch.tensor([0, *(len(node) for node in nodes)])
    return Starts(torch.cat(nodes), torch.cat(weights), sizes.cumsum(0))
