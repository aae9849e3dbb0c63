"""Attention over branches and the score of every entity in one native pass, without gradients.

`kernels.score` defines what is computed.

All maps act on F_k = [z_k ; q]. What they make of the query q is computed once per query, in torch; the native pass
adds what they make of the state z_k.

B queries, C candidates, K branches, D channels, Q channels of a query vector, A attention width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gamma_kg.kernels.native.arrays import array, maybe, result
from gamma_kg.kernels.native.checked import checked_offsets
from gamma_kg.kernels.native.loading import loaded
from gamma_kg.kernels.native.propagation import supports
from gamma_kg.kernels.parameters import ScoreWeights
from gamma_kg.kernels.score import by_query, constant_weights, part_of_branch
from gamma_kg.machine.threads import engine_threads


def can_score(z_KBCD: Sequence[Tensor]) -> bool:
    """Whether the native pass can take these states; a slice of candidates will do."""
    first = z_KBCD[0]
    return all(supports(z, first, "real") and z.stride() == first.stride() for z in z_KBCD) and first.stride()[1:] == (
        first.shape[2],
        1,
    )


def score_candidates(
    z_KBCD: Sequence[Tensor], query_BQ: Tensor, weights: ScoreWeights, offset_B1: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Scores (B, C) and branch weights (B, C, K); the caller has asked `can_score`.

    With `offset_B1` the states are (1, C, D), and the candidates of query b are offset[b] : offset[b + 1] of them.
    """
    B, K, attention, dtype = len(query_BQ), len(z_KBCD), weights.attention, query_BQ.dtype
    hidden_KHD, hidden_BKH = _by_part(weights.hidden, query_BQ)
    keys: list[Tensor | None] = [None, None, None]
    given_BK: Tensor | None = None
    if attention is None:
        given_BK = query_BQ.new_ones(B, K)
    elif isinstance(attention.keys, Tensor):
        given_BK = constant_weights(attention, B)
    else:
        key_KAD, key_BKA = _by_part(attention.keys, query_BQ)
        keys = [key_KAD, key_BKA, attention.context_BA.expand(B, key_KAD.shape[1])]
    score_BC = query_BQ.new_empty(z_KBCD[0].shape[:2])
    weight_BCK = query_BQ.new_empty(*z_KBCD[0].shape[:2], K)
    offset = None if offset_B1 is None else checked_offsets("offsets", offset_B1, z_KBCD[0].shape[1])
    loaded().score(
        [z.detach().numpy() for z in z_KBCD], offset, *(maybe("keys", key, dtype) for key in keys),
        1.0 if attention is None else float(attention.temperature), 0.0 if attention is None else attention.uniform_mix,
        maybe("branch weights", given_BK, dtype), array("hidden layer", hidden_KHD, dtype),
        array("hidden layer of the queries", hidden_BKH, dtype), array("hidden bias", weights.hidden_bias, dtype),
        array("out", weights.out, dtype), float(weights.out_bias), result("scores", score_BC, dtype),
        result("branch weights", weight_BCK, dtype), engine_threads(),
    )  # fmt: skip
    return score_BC, None if attention is None else weight_BCK


def _by_part(weights: Sequence[Tensor], query_BQ: Tensor) -> tuple[Tensor, Tensor]:
    """The part of each map that acts on the state, (K, out, D), and what the other makes of the query, (B, K, out)."""
    D = weights[0].shape[1] // 2
    of_query = [by_query(part_of_branch(query_BQ, k, D), weight[:, D:]) for k, weight in enumerate(weights)]
    return torch.stack([weight[:, :D] for weight in weights]), torch.stack(of_query, dim=1).contiguous()
