"""Attention over branches, and the score (MODEL.md §6).

Features of branch k at entity e are F_k = [z_k ; q], the state and the query vector. No such concatenation is ever
made: a linear map of F_k is a map of z_k plus a map of q, and the latter is needed once per query.

B queries, C candidate entities, D channels, K branches, A attention width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gamma_kg.config import GammaConfig


def linear_of_features(weight: Tensor, z_BCD: Tensor, query_BD: Tensor) -> Tensor:
    """weight · [z ; q] for every candidate, (B, C, out)."""
    weight_z, weight_q = weight.split(z_BCD.shape[-1], dim=1)
    return F.linear(z_BCD, weight_z) + F.linear(query_BD, weight_q)[:, None]


class BranchAttention(nn.Module):
    """How much each branch counts at each candidate: α~ = (1−λ) softmax_k(cos(key_k, context)/κ) + λ/K."""

    def __init__(self, config: GammaConfig) -> None:
        super().__init__()
        self.config = config
        width, features = config.attention_dim, 2 * config.dim
        # Without query the context is a learned constant; without key each branch has a constant key.
        self.context: nn.Parameter | nn.Linear
        self.keys: nn.Parameter | nn.ModuleList
        if config.attention == "no-query":
            self.context = nn.Parameter(torch.randn(width))
        else:
            self.context = nn.Linear(config.dim, width, bias=False)
        if config.attention == "no-key":
            self.keys = nn.Parameter(torch.randn(config.num_branches, width))
        else:
            self.keys = nn.ModuleList(nn.Linear(features, width, bias=False) for _ in config.branches)
        self.temperature = nn.Parameter(torch.tensor(config.temperature))

    def forward(self, z_KBCD: Sequence[Tensor], query_BD: Tensor) -> Tensor:
        """Branch weights, (B, C, K)."""
        context_BA = self.context(query_BD) if isinstance(self.context, nn.Linear) else self.context[None]
        context_BA = F.normalize(context_BA, dim=-1)
        if isinstance(self.keys, nn.ModuleList):
            cosines = [
                (F.normalize(linear_of_features(key, z_BCD, query_BD), dim=-1) @ context_BA[..., None])[..., 0]
                for key, z_BCD in zip(self.keys.parameters(), z_KBCD, strict=True)
            ]
            cosine_BCK = torch.stack(cosines, dim=-1)
        else:
            cosine_BK = context_BA @ F.normalize(self.keys, dim=-1).T
            cosine_BCK = cosine_BK[:, None].expand(-1, z_KBCD[0].shape[1], -1)
        mix = self.config.uniform_mix
        return (1 - mix) * F.softmax(cosine_BCK / self.temperature, dim=-1) + mix / self.config.num_branches


class Score(nn.Module):
    """MLP on the weighted features: side by side, or summed."""

    def __init__(self, config: GammaConfig) -> None:
        super().__init__()
        self.config = config
        width = 2 * config.dim * (config.num_branches if config.combine == "concat" else 1)
        hidden = config.mlp_hidden or width
        self.hidden = nn.Linear(width, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, z_KBCD: Sequence[Tensor], query_BD: Tensor, weight_BCK: Tensor | None) -> Tensor:
        """Scores, (B, C). Without weights every branch counts fully."""
        weights = self.hidden.weight.split(2 * self.config.dim, dim=1)
        if len(weights) == 1:
            weights = weights * len(z_KBCD)
        hidden_BCH: Tensor = self.hidden.bias
        for k, (weight, z_BCD) in enumerate(zip(weights, z_KBCD, strict=True)):
            part_BCH = linear_of_features(weight, z_BCD, query_BD)
            hidden_BCH = hidden_BCH + (part_BCH if weight_BCK is None else part_BCH * weight_BCK[..., k, None])
        score_BC1: Tensor = self.out(F.relu(hidden_BCH))
        return score_BC1[..., 0]
