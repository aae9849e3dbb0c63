"""What a layer, attention and the score are made of, as records: what the model hands to a backend.

D channels, K branches, A attention width, H hidden width, B queries, U relation tables, R edge types, W width of a
relation vector. Maps of features [z ; q] have 2D inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# The relation vectors of one layer for U relations that were asked about: (U, R, W), or U times (R, W), each where it
# was made. A batch of small queries would spend a tenth of its time on copying them side by side.
RelationTables = Tensor | Sequence[Tensor]


def side_by_side(tables: RelationTables) -> Tensor:
    """All of them as one tensor, (U, R, W)."""
    return tables if isinstance(tables, Tensor) else torch.stack(list(tables))


class LayerWeights(NamedTuple):
    """A layer but for its relation vectors."""

    weight: Tensor  # on [x ; agg]: (D, 2D), and (D, 13D) with "pna"
    bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor
    eps: float
    algebra: str
    aggregation: str = "sum"


class LayerStack(NamedTuple):
    """All layers of an encoder, and which relation vectors each query goes through them with."""

    layers: Sequence[LayerWeights]
    tables: Sequence[RelationTables]  # of each layer
    which_B: Tensor | None  # the table of each query; without it all use the first

    def of_queries(self, part: slice) -> LayerStack:
        return self if self.which_B is None else self._replace(which_B=self.which_B[part])


class AttentionWeights(NamedTuple):
    """How much each branch counts: a comparison of keys with a context."""

    keys: Sequence[Tensor] | Tensor  # a map (A, 2D) of the features of each branch, or constant keys (K, A)
    context_BA: Tensor  # of length one; (1, A) where it is a constant
    temperature: Tensor  # κ
    uniform_mix: float  # λ


class ScoreWeights(NamedTuple):
    """The MLP on the weighted features of the branches."""

    hidden: Sequence[Tensor]  # the part that acts on each branch's features, K times (H, 2D)
    hidden_bias: Tensor
    out: Tensor  # (H,)
    out_bias: Tensor
    attention: AttentionWeights | None  # None: every branch counts fully
