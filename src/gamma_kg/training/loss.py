"""Losses as functions of scores and two masks: which candidates are right, which are wrong; others don't count.

B queries, C candidates, K branches, T teachers. Every loss is a mean over the queries.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def bce_loss(score_BC: Tensor, right_BC: Tensor, wrong_BC: Tensor, temperature: float = 1.0) -> Tensor:
    """Binary cross-entropy; wrong answers weigh softmax(score/τ), so that the hard ones count (τ = 0: equally)."""
    right_B = _masked_mean(F.softplus(-score_BC), right_BC)
    with torch.no_grad():
        level_BC = score_BC / temperature if temperature > 0 else torch.zeros_like(score_BC)
        weight_BC = F.softmax(level_BC.masked_fill(~wrong_BC, -torch.inf), dim=-1).nan_to_num(0.0)
    wrong_B = (weight_BC * F.softplus(score_BC)).sum(-1)
    return ((right_B + wrong_B) / 2).mean()


def softmax_loss(score_BC: Tensor, right_BC: Tensor, wrong_BC: Tensor) -> Tensor:
    """Cross-entropy of each right answer against the wrong ones; other right answers are no rivals of it."""
    # A query without any wrong answer has nothing to learn: its rivals sum to 0, the loss is 0.
    rivals_B1 = score_BC.masked_fill(~wrong_BC, torch.finfo(score_BC.dtype).min).logsumexp(-1, keepdim=True)
    return _masked_mean(F.softplus(rivals_B1 - score_BC), right_BC).mean()


def teacher_loss(score_BC: Tensor, taught_BC: Tensor, counted_BC: Tensor) -> Tensor:
    """How far the shares that a model gives the candidates that count are from a teacher's: KL(teacher ‖ model)."""
    own_BC, taught_BC = (_log_shares(scores, counted_BC) for scores in (score_BC, taught_BC.to(score_BC.dtype)))
    return (taught_BC.exp() * (taught_BC - own_BC) * counted_BC).sum(-1).mean()


def likely_mix(taught_TBC: Tensor, right_BC: Tensor, wrong_BC: Tensor) -> Tensor:
    """Logarithms of the teachers' shares, mixed for each query in proportion to what each gives the right answers."""
    share_TBC = _log_shares(taught_TBC, right_BC | wrong_BC)
    trust_TB = _masked_mean(share_TBC, right_BC).log_softmax(0)
    return (share_TBC + trust_TB[..., None]).logsumexp(0)


def branch_entropy(weight_BCK: Tensor, counted_BC: Tensor) -> Tensor:
    """Entropy of the branch weights: mean over the candidates that count, then over the queries."""
    entropy_BC = -(weight_BCK * weight_BCK.clamp_min(1e-9).log()).sum(-1)
    return _masked_mean(entropy_BC, counted_BC).mean()


def _log_shares(scores: Tensor, counted_BC: Tensor) -> Tensor:
    """Logarithms of the shares of the candidates that count; finite for a query without any, which so adds nothing."""
    return scores.masked_fill(~counted_BC, torch.finfo(scores.dtype).min).log_softmax(-1)


def _masked_mean(value_BC: Tensor, mask_BC: Tensor) -> Tensor:
    return (value_BC * mask_BC).sum(-1) / mask_BC.sum(-1).clamp_min(1)
