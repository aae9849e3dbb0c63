"""Attention over branches and the score of every entity in one native pass, without gradients.

`kernels.score` defines what is computed.

All maps act on F_k = [z_k ; q]. What they make of the query q is computed once per query, in torch; the native pass
adds what they make of the state z_k.

B queries, C candidates, K branches, D channels, A attention width, H hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gamma_kg.kernels.native.loading import shown, typed
from gamma_kg.kernels.native.propagation import supports
from gamma_kg.kernels.parameters import ScoreWeights
from gamma_kg.kernels.score import by_query, constant_weights


def can_score(z_KBCD: Sequence[Tensor]) -> bool:
    """Whether the native pass can take these states; a slice of candidates will do."""
    first = z_KBCD[0]
    return all(supports(z, first, "real") and z.stride() == first.stride() for z in z_KBCD) and first.stride()[1:] == (
        first.shape[2],
        1,
    )


def score_candidates(z_KBCD: Sequence[Tensor], query_BD: Tensor, weights: ScoreWeights) -> tuple[Tensor, Tensor | None]:
    """Scores (B, C) and branch weights (B, C, K); the caller has asked `can_score`."""
    (B, C, D), K, H = z_KBCD[0].shape, len(z_KBCD), weights.out.shape[0]
    attention, dtype = weights.attention, query_BD.dtype
    hidden_KHD, hidden_BKH = _by_part(weights.hidden, query_BD)
    keys: tuple[Tensor, ...] = ()
    given_BK: Tensor | None = None
    if attention is None:
        given_BK = query_BD.new_ones(B, K)
    elif isinstance(attention.keys, Tensor):
        given_BK = constant_weights(attention, B).contiguous()
    else:
        key_KAD, key_BKA = _by_part(attention.keys, query_BD)
        keys = (key_KAD, key_BKA, attention.context_BA.expand(B, key_KAD.shape[1]).contiguous())
    if any(z.shape != (B, C, D) or z.dtype != dtype for z in z_KBCD) or query_BD.shape != (B, D):
        raise ValueError(f"states {shown(z_KBCD[0])} do not fit queries {shown(query_BD)}")
    score_BC, weight_BCK = query_BD.new_empty(B, C), query_BD.new_empty(B, C, K)
    dense = [tensor.contiguous() for tensor in (hidden_KHD, hidden_BKH, weights.hidden_bias, weights.out)]
    _run(
        sizes=(B, C, K, D, keys[0].shape[1] if keys else 0, H),
        states=z_KBCD, keys=keys, weight_BK=given_BK, dense=dense,
        temperature=1.0 if attention is None else float(attention.temperature),
        mix=0.0 if attention is None else attention.uniform_mix,
        out_bias=float(weights.out_bias), results=(score_BC, weight_BCK),
    )  # fmt: skip
    return score_BC, None if attention is None else weight_BCK


def _by_part(weights: Sequence[Tensor], query_BD: Tensor) -> tuple[Tensor, Tensor]:
    """The part of each map that acts on the state, (K, out, D), and what the other makes of the query, (B, K, out)."""
    D = query_BD.shape[1]
    of_query = torch.stack([by_query(query_BD, weight[:, D:]) for weight in weights], dim=1)
    return torch.stack([weight[:, :D] for weight in weights]), of_query.contiguous()


def _run(
    *,
    sizes: tuple[int, int, int, int, int, int],
    states: Sequence[Tensor],
    keys: Sequence[Tensor],
    weight_BK: Tensor | None,
    dense: Sequence[Tensor],
    temperature: float,
    mix: float,
    out_bias: float,
    results: tuple[Tensor, Tensor],
) -> None:
    """Scores of all candidates; everything has been checked.

    `sizes`: B, C, K, D, A, H. `keys`: nothing, or key weights, their part from the query, context. `dense`: hidden
    weights, their part from the query, hidden bias, out weight.
    """
    hidden, of_query, hidden_bias, out_weight = dense
    everything = (*keys, *dense, *results, *states)
    if any(tensor.dtype != results[0].dtype for tensor in everything):
        raise ValueError("the score wants tensors of one type")
    typed("score", results[0])(
        list(sizes), [z.data_ptr() for z in states], states[0].stride(0),
        *([tensor.data_ptr() for tensor in keys] or (0, 0, 0)), temperature, mix,
        0 if weight_BK is None else weight_BK.data_ptr(), hidden.data_ptr(), of_query.data_ptr(),
        hidden_bias.data_ptr(), out_weight.data_ptr(), out_bias,
        *(result.data_ptr() for result in results), torch.get_num_threads(),
    )  # fmt: skip
