"""Attention over branches, and the score (docs/model.md §6), in plain torch: the definition.

Features of branch k at entity e are F_k = [z_k ; q], the state and the query vector. No such concatenation is ever
made: a linear map of F_k is a map of z_k plus a map of q, and the latter is needed once per query.

The query vector is one for all branches (Q = D), or has a part for each (Q = K·D).

B queries, C candidate entities, D channels, K branches, Q channels of a query, A attention width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gamma_kg.kernels.parameters import AttentionWeights, ScoreWeights

# Queries of one product in `by_query`.
ROWS = 16
# Hidden values held at once while no gradient is wanted, in floats.
BLOCK_FLOATS = 1 << 22


def part_of_branch(vectors: Tensor, k: int, dim: int) -> Tensor:
    """What branch k knows of queries or relations: all of the Q channels where branches share them, else its D."""
    return vectors if vectors.shape[-1] == dim else vectors[..., k * dim : (k + 1) * dim]


def linear_of_features(weights: Sequence[Tensor], z_KBCD: Sequence[Tensor], query_BQ: Tensor) -> list[Tensor]:
    """weight_k · [z_k ; q_k] for every branch and candidate, K times (B, C, out)."""
    found = []
    for k, (weight, z_BCD) in enumerate(zip(weights, z_KBCD, strict=True)):
        dim = z_BCD.shape[-1]
        weight_z, weight_q = weight.split(dim, dim=1)
        found.append(F.linear(z_BCD, weight_z) + F.linear(part_of_branch(query_BQ, k, dim), weight_q)[:, None])
    return found


def by_query(query_BQ: Tensor, weight: Tensor) -> Tensor:
    """weight · q of every query, (B, out): the same bits whichever queries are asked together.

    A matrix product of another number of rows may round differently (with fewer than four rows it does), so it is
    always one of `ROWS`.
    """
    B = len(query_BQ)
    padded = F.pad(query_BQ, (0, 0, 0, -B % ROWS))
    return torch.cat([part @ weight.T for part in padded.split(ROWS)])[:B] if B else query_BQ @ weight.T


def branch_weights(attention: AttentionWeights, z_KBCD: Sequence[Tensor], query_BQ: Tensor) -> Tensor:
    """α~ = (1−λ) softmax_k(cos(key_k, context)/κ) + λ/K of every candidate, (B, C, K)."""
    if isinstance(attention.keys, Tensor):
        return constant_weights(attention, len(query_BQ))[:, None].expand(-1, z_KBCD[0].shape[1], -1)
    cosines = [
        (F.normalize(key_BCA, dim=-1) @ attention.context_BA[..., None])[..., 0]
        for key_BCA in linear_of_features(attention.keys, z_KBCD, query_BQ)
    ]
    return _mixed(attention, torch.stack(cosines, dim=-1))


def constant_weights(attention: AttentionWeights, num_queries: int) -> Tensor:
    """Branch weights (B, K) where the keys are constants."""
    assert isinstance(attention.keys, Tensor)
    cosine_BK = attention.context_BA @ F.normalize(attention.keys, dim=-1).T
    return _mixed(attention, cosine_BK).expand(num_queries, -1)


def _mixed(attention: AttentionWeights, cosine_K: Tensor) -> Tensor:
    mix = attention.uniform_mix
    return (1 - mix) * F.softmax(cosine_K / attention.temperature, dim=-1) + mix / cosine_K.shape[-1]


def score_reference(
    z_KBCD: Sequence[Tensor], query_BQ: Tensor, weights: ScoreWeights, dropout: float = 0.0
) -> tuple[Tensor, Tensor | None]:
    """Scores (B, C) and branch weights (B, C, K), or None without attention; `dropout` falls on the weights' use.

    Where no gradient is wanted the wide hidden layer is computed for a block of candidates at a time.
    """
    num_candidates, widest = z_KBCD[0].shape[1], max(len(weights.out), *(len(part) for part in weights.hidden))
    block = max(1, BLOCK_FLOATS // max(1, len(query_BQ) * widest))
    if torch.is_grad_enabled() or num_candidates <= block:
        return _score_block(z_KBCD, query_BQ, weights, dropout)
    parts = [
        _score_block([z_BCD[:, first : first + block] for z_BCD in z_KBCD], query_BQ, weights, dropout)
        for first in range(0, num_candidates, block)
    ]
    weights_BCK = [weight for _, weight in parts if weight is not None]
    return torch.cat([score for score, _ in parts], dim=1), torch.cat(weights_BCK, dim=1) if weights_BCK else None


def _score_block(
    z_KBCD: Sequence[Tensor], query_BQ: Tensor, weights: ScoreWeights, dropout: float
) -> tuple[Tensor, Tensor | None]:
    weight_BCK = None if weights.attention is None else branch_weights(weights.attention, z_KBCD, query_BQ)
    applied = weight_BCK if weight_BCK is None or not dropout else F.dropout(weight_BCK, dropout)
    hidden_BCH: Tensor = weights.hidden_bias
    for k, part_BCH in enumerate(linear_of_features(weights.hidden, z_KBCD, query_BQ)):
        hidden_BCH = hidden_BCH + (part_BCH if applied is None else part_BCH * applied[..., k, None])
    return F.relu(hidden_BCH) @ weights.out + weights.out_bias, weight_BCK
