"""What a step minimises: the loss of a batch, in part the distance to a teacher, less the reward for entropy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gamma_kg.graph.starts import Starts
from gamma_kg.nn.model import GammaModel, Scores
from gamma_kg.training.batch import Batch
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.loss import bce_loss, branch_entropy, softmax_loss, teacher_loss


def batch_loss(
    model: nn.Module, batch: Batch, config: TrainConfig, teacher: GammaModel | None = None
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
    if teacher is not None:
        with torch.no_grad():
            taught = teacher(batch.edges, batch.relation_graph, starts, batch.relation_B, batch.candidate_BC)
        distance = teacher_loss(score_BC, taught.score_BC, batch.right_BC | batch.wrong_BC)
        loss = (1 - config.teacher_share) * loss + config.teacher_share * distance
    if scores.weight_BCK is None:
        return loss, 0.0
    entropy = branch_entropy(scores.weight_BCK.float(), batch.right_BC | batch.wrong_BC)
    return loss - config.entropy_weight * entropy, float(entropy.detach())
