"""What a step minimises: the loss of a batch, in part the distance to its teachers, less the reward for entropy.

B queries, C candidates, T teachers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gamma_kg.graph.starts import Starts
from gamma_kg.nn.model import GammaModel, Scores
from gamma_kg.training.batch import Batch
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.loss import bce_loss, branch_entropy, likely_mix, softmax_loss, teacher_loss


class Teacher(NamedTuple):
    """A model that is imitated, and whether it looks at the whole graph that a neighbourhood is of."""

    model: GammaModel
    sees_whole: bool = False

    @torch.no_grad()
    def scores(self, batch: Batch) -> Tensor:
        """Of the batch's candidates."""
        if self.sees_whole and batch.whole_edges is not None and batch.whole_source_B is not None:
            edges, source_B, candidate_BC = batch.whole_edges, batch.whole_source_B, batch.whole_candidate_BC
        else:
            edges, source_B, candidate_BC = batch.edges, batch.source_B, batch.candidate_BC
        scores: Scores = self.model(
            edges, batch.relation_graph, Starts.single(source_B), batch.relation_B, candidate_BC
        )
        return scores.score_BC.float()


def batch_loss(
    model: nn.Module, batch: Batch, config: TrainConfig, teachers: Sequence[Teacher] = ()
) -> tuple[Tensor, float]:
    """Loss of a batch, less the entropy term, and the entropy itself."""
    starts = Starts.single(batch.source_B)
    bfloat = config.autocast and batch.source_B.is_cuda
    with torch.autocast(batch.source_B.device.type, torch.bfloat16, enabled=bfloat):
        scores: Scores = model(batch.edges, batch.relation_graph, starts, batch.relation_B, batch.candidate_BC)
    score_BC = scores.score_BC.float()
    if config.loss == "bce":
        loss = bce_loss(score_BC, batch.right_BC, batch.wrong_BC, config.adversarial_temperature)
    else:
        loss = softmax_loss(score_BC, batch.right_BC, batch.wrong_BC)
    if teachers:
        taught_TBC = torch.stack([teacher.scores(batch) for teacher in teachers])
        if config.teacher_mix == "likely":
            taught_BC = likely_mix(taught_TBC, batch.right_BC, batch.wrong_BC)
        else:
            taught_BC = taught_TBC.mean(0)
        distance = teacher_loss(score_BC, taught_BC, batch.right_BC | batch.wrong_BC)
        loss = (1 - config.teacher_share) * loss + config.teacher_share * distance
    if scores.weight_BCK is None:
        return loss, 0.0
    entropy = branch_entropy(scores.weight_BCK.float(), batch.right_BC | batch.wrong_BC)
    return loss - config.entropy_weight * entropy, float(entropy.detach())
