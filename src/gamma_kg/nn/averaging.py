"""One model from several: the mean of their weights. It means something for runs that began from the same weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gamma_kg.errors import CheckpointError
from gamma_kg.nn.checkpoint import Checkpoint
from gamma_kg.nn.provenance import in_short


def average(checkpoints: Sequence[Checkpoint], shares: Sequence[float] | None = None) -> Checkpoint:
    """Σ share · weights; equal shares when None. One with pairs of relations gives them to the others, at zero."""
    shares = [1.0] * len(checkpoints) if shares is None else list(shares)
    if len(shares) != len(checkpoints) or min(shares, default=0) < 0 or not sum(shares) > 0:
        raise CheckpointError(
            f"a mean of {len(checkpoints)} checkpoints wants as many shares, 0 or more and not all 0, got {shares}"
        )
    if any(checkpoint.config.relation_graph == "pairs" for checkpoint in checkpoints):
        checkpoints = [checkpoint.with_pairs() for checkpoint in checkpoints]
    first = checkpoints[0]
    if any(checkpoint.config != first.config for checkpoint in checkpoints):
        raise CheckpointError("a mean of weights wants models of one kind: these have other configs")
    shares = [share / sum(shares) for share in shares]
    weights = {
        name: torch.stack([s * c.weights[name] for s, c in zip(shares, checkpoints, strict=True)]).sum(0)
        for name in first.weights
    }
    made = {"mean_of": [in_short(checkpoint.provenance) for checkpoint in checkpoints], "shares": shares}
    return Checkpoint(first.config, weights, made)
