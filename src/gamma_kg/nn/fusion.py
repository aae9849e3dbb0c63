"""Parameters of attention over branches and of the score (docs/model.md §6); `kernels.score` says what they compute.

B queries, C candidates, D channels, Q channels of a query vector, K branches, A attention width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gamma_kg.kernels.parameters import AttentionWeights, ScoreWeights
from gamma_kg.kernels.score import branch_weights, by_query
from gamma_kg.nn.config import MIN_TEMPERATURE, GammaConfig


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
            self.context = nn.Linear(config.query_width, width, bias=False)
        if config.attention == "no-key":
            self.keys = nn.Parameter(torch.randn(config.num_branches, width))
        else:
            self.keys = nn.ModuleList(nn.Linear(features, width, bias=False) for _ in config.branches)
        self.temperature = nn.Parameter(torch.tensor(config.temperature))

    @property
    def bounded_temperature(self) -> Tensor:
        """κ, but never less than the bound; the gradient passes as if there were none, so that κ can come back."""
        kappa: Tensor = self.temperature
        return kappa + (kappa.clamp(min=MIN_TEMPERATURE) - kappa).detach()

    def weights(self, query_BQ: Tensor) -> AttentionWeights:
        """What `kernels.score.branch_weights` takes, for these queries."""
        context = self.context
        context_BA = by_query(query_BQ, context.weight) if isinstance(context, nn.Linear) else context[None]
        keys = self.keys if isinstance(self.keys, nn.Parameter) else list(self.keys.parameters())
        context_BA = F.normalize(context_BA, dim=-1)
        return AttentionWeights(keys, context_BA, self.bounded_temperature, self.config.uniform_mix)

    def forward(self, z_KBCD: Sequence[Tensor], query_BQ: Tensor) -> Tensor:
        """Branch weights, (B, C, K)."""
        return branch_weights(self.weights(query_BQ), z_KBCD, query_BQ)


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

    def weights(self, attention: AttentionWeights | None) -> ScoreWeights:
        """What `kernels.score.score_reference` takes."""
        return ScoreWeights(self.branch_maps(), self.hidden.bias, self.out.weight[0], self.out.bias[0], attention)
