"""Attention over branches and the score of every entity in one native pass, without gradients (`nn.fusion` defines it).

All maps act on F_k = [z_k ; q]. What they make of the query q is computed once per query, in torch; the native pass
adds what they make of the state z_k.

B queries, C candidates, K branches, D channels, A attention width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.kernels import native

ROWS = 16


class HeadWeights(NamedTuple):
    """The score's parameters, and what attention needs. Maps of F_k have 2D inputs: first z, then q."""

    hidden: Sequence[Tensor]  # K times (H, 2D)
    hidden_bias: Tensor
    out: Tensor  # (H,)
    out_bias: float
    keys: Sequence[Tensor] | None  # K times (A, 2D); None: the branch weights are given
    context_BA: Tensor | None  # of length one
    temperature: float
    uniform_mix: float
    weight_BK: Tensor | None  # branch weights where there are no keys


def can_score(z_KBCD: Sequence[Tensor]) -> bool:
    """Whether the native pass can take these states; a slice of candidates will do."""
    first = z_KBCD[0]
    return (
        not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and all(native.supports(z, first, "real") and z.stride() == first.stride() for z in z_KBCD)
        and first.stride()[1:] == (first.shape[2], 1)
    )


def score_candidates(z_KBCD: Sequence[Tensor], query_BD: Tensor, head: HeadWeights) -> tuple[Tensor, Tensor]:
    """Scores (B, C) and branch weights (B, C, K); the caller has asked `can_score`."""
    (B, C, D), K, H = z_KBCD[0].shape, len(z_KBCD), head.out.shape[0]
    dtype = query_BD.dtype
    hidden_KHD, hidden_BKH = _by_part(head.hidden, query_BD)
    attention = 0
    keys: tuple[Tensor, ...] = ()
    if head.keys is not None:
        assert head.context_BA is not None
        key_KAD, key_BKA = _by_part(head.keys, query_BD)
        attention = key_KAD.shape[1]
        keys = (key_KAD, key_BKA, head.context_BA.expand(B, attention).contiguous())
    weight_BK = None if head.weight_BK is None else head.weight_BK.expand(B, K).contiguous()
    if (head.keys is None) == (weight_BK is None):
        raise ValueError("branch weights come from keys, or are given: one of the two")
    if any(z.shape != (B, C, D) or z.dtype != dtype for z in z_KBCD) or query_BD.shape != (B, D):
        raise ValueError(f"states {native.shown(z_KBCD[0])} do not fit queries {native.shown(query_BD)}")
    score_BC, weight_BCK = query_BD.new_empty(B, C), query_BD.new_empty(B, C, K)
    dense = [tensor.contiguous() for tensor in (hidden_KHD, hidden_BKH, head.hidden_bias, head.out)]
    native.run_score(
        sizes=(B, C, K, D, attention, H), states=z_KBCD, keys=keys, weight_BK=weight_BK, dense=dense,
        temperature=head.temperature, mix=head.uniform_mix, out_bias=head.out_bias, results=(score_BC, weight_BCK),
    )  # fmt: skip
    return score_BC, weight_BCK


def _by_part(weights: Sequence[Tensor], query_BD: Tensor) -> tuple[Tensor, Tensor]:
    """The part of each map that acts on the state, (K, out, D), and what the other makes of the query, (B, K, out)."""
    D = query_BD.shape[1]
    of_query = torch.stack([by_query(query_BD, weight[:, D:]) for weight in weights], dim=1)
    return torch.stack([weight[:, :D] for weight in weights]), of_query.contiguous()


def by_query(query_BD: Tensor, weight: Tensor) -> Tensor:
    """weight · q of every query, (B, out): the same bits whichever queries are asked together.

    A matrix product of another number of rows may round differently (with fewer than four rows it does), so it is
    always one of `ROWS`.
    """
    B = len(query_BD)
    padded = torch.nn.functional.pad(query_BD, (0, 0, 0, -B % ROWS))
    return torch.cat([part @ weight.T for part in padded.split(ROWS)])[:B] if B else query_BD @ weight.T
