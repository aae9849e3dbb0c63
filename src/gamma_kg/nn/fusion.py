"""Attention over branches, and the score (docs/model.md §6).

Features of branch k at entity e are F_k = [z_k ; q], the state and the query vector. No such concatenation is ever
made: a linear map of F_k is a map of z_k plus a map of q, and the latter is needed once per query.

B queries, C candidate entities, D channels, K branches, A attention width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gamma_kg.kernels.head import HeadWeights, by_query, score_candidates
from gamma_kg.nn.config import GammaConfig


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

    def context_of(self, query_BD: Tensor) -> Tensor:
        """What the keys are compared with, of length one: (B, A), or (1, A) where it is a constant."""
        if not isinstance(self.context, nn.Linear):
            return F.normalize(self.context[None], dim=-1)
        return F.normalize(by_query(query_BD, self.context.weight), dim=-1)

    def weights(self, cosine: Tensor) -> Tensor:
        """Branch weights from cosines, along the last axis."""
        mix = self.config.uniform_mix
        return (1 - mix) * F.softmax(cosine / self.temperature, dim=-1) + mix / self.config.num_branches

    def constant_weights(self, query_BD: Tensor) -> Tensor:
        """Branch weights (B, K) where the keys are constants."""
        assert isinstance(self.keys, nn.Parameter)
        return self.weights(self.context_of(query_BD) @ F.normalize(self.keys, dim=-1).T)

    def forward(self, z_KBCD: Sequence[Tensor], query_BD: Tensor) -> Tensor:
        """Branch weights, (B, C, K)."""
        if not isinstance(self.keys, nn.ModuleList):
            return self.constant_weights(query_BD)[:, None].expand(-1, z_KBCD[0].shape[1], -1)
        context_BA = self.context_of(query_BD)
        cosines = [
            (F.normalize(linear_of_features(key, z_BCD, query_BD), dim=-1) @ context_BA[..., None])[..., 0]
            for key, z_BCD in zip(self.keys.parameters(), z_KBCD, strict=True)
        ]
        return self.weights(torch.stack(cosines, dim=-1))


class Score(nn.Module):
    """MLP on the weighted features: side by side, or summed."""

    def __init__(self, config: GammaConfig) -> None:
        super().__init__()
        self.config = config
        width = 2 * config.dim * (config.num_branches if config.combine == "concat" else 1)
        hidden = config.mlp_hidden or width
        self.hidden = nn.Linear(width, hidden)
        self.out = nn.Linear(hidden, 1)

    def branch_maps(self) -> Sequence[Tensor]:
        """The part of the hidden layer that acts on each branch's features, K times (H, 2D)."""
        weights: tuple[Tensor, ...] = self.hidden.weight.split(2 * self.config.dim, dim=1)
        return weights if self.config.combine == "concat" else weights * self.config.num_branches

    def forward(self, z_KBCD: Sequence[Tensor], query_BD: Tensor, weight_BCK: Tensor | None) -> Tensor:
        """Scores, (B, C). Without weights every branch counts fully."""
        weights = self.branch_maps()
        hidden_BCH: Tensor = self.hidden.bias
        for k, (weight, z_BCD) in enumerate(zip(weights, z_KBCD, strict=True)):
            part_BCH = linear_of_features(weight, z_BCD, query_BD)
            hidden_BCH = hidden_BCH + (part_BCH if weight_BCK is None else part_BCH * weight_BCK[..., k, None])
        score_BC1: Tensor = self.out(F.relu(hidden_BCH))
        return score_BC1[..., 0]


def fused_scores(
    score: Score, attention: BranchAttention | None, z_KBCD: Sequence[Tensor], query_BD: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Scores and branch weights, as `attention` and `score` give them, in one native pass without gradients."""
    keys = attention.keys if attention is not None and isinstance(attention.keys, nn.ModuleList) else None
    given: Tensor | None = None
    if attention is None:
        given = query_BD.new_ones(1, len(z_KBCD))
    elif keys is None:
        given = attention.constant_weights(query_BD)
    head = HeadWeights(
        hidden=score.branch_maps(),
        hidden_bias=score.hidden.bias,
        out=score.out.weight[0],
        out_bias=float(score.out.bias),
        keys=None if keys is None else list(keys.parameters()),
        context_BA=None if attention is None else attention.context_of(query_BD),
        temperature=1.0 if attention is None else float(attention.temperature),
        uniform_mix=score.config.uniform_mix,
        weight_BK=given,
    )
    score_BC, weight_BCK = score_candidates(z_KBCD, query_BD, head)
    return score_BC, None if attention is None else weight_BCK
