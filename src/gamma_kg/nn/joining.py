"""One model from several: their branches side by side, each with the relation encoder it was trained with.

The new model begins near the mean of the models' scores, not at it: each model's own branch weights sum to 1, and in
the new attention all branches share that sum, so the maps behind it are scaled by what a branch gets less on average.
Training goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gamma_kg.errors import CheckpointError
from gamma_kg.nn.checkpoint import Checkpoint
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.model import GammaModel
from gamma_kg.nn.provenance import in_short


@dataclass(frozen=True)
class _Member:
    """A model with its place among the branches and the hidden units of the new one."""

    checkpoint: Checkpoint
    first_branch: int
    first_hidden: int

    @property
    def num_branches(self) -> int:
        return self.checkpoint.config.num_branches

    @property
    def hidden(self) -> Tensor:
        return self.checkpoint.weights["score.hidden.weight"]


def join(checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """The branches of all models in one; what is new about it (keys of a lone branch) is drawn with a fixed seed."""
    if any(checkpoint.config.relation_graph == "pairs" for checkpoint in checkpoints):
        checkpoints = [checkpoint.with_pairs() for checkpoint in checkpoints]
    members = _members(checkpoints)
    config = _joined_config(members)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weights = {name: tensor.clone() for name, tensor in GammaModel(config).state_dict().items()}
    for name in ("score.hidden.weight", "attention.context.weight", "score.out.bias"):
        weights[name].zero_()
    for member in members:
        _put(member, weights, config, len(members))
    made = {"joined": [in_short(checkpoint.provenance) for checkpoint in checkpoints]}
    return Checkpoint(config, weights, made)


def _members(checkpoints: Sequence[Checkpoint]) -> list[_Member]:
    members: list[_Member] = []
    branch = hidden = 0
    for checkpoint in checkpoints:
        members.append(_Member(checkpoint, branch, hidden))
        branch, hidden = branch + checkpoint.config.num_branches, hidden + len(members[-1].hidden)
    return members


def _joined_config(members: Sequence[_Member]) -> GammaConfig:
    """That of the first model which has attention, with the branches of all."""
    configs = [member.checkpoint.config for member in members]
    if len(configs) < 2:
        raise CheckpointError(f"joining wants two models or more, got {len(configs)}")
    model = next((config for config in configs if config.num_branches > 1), configs[0])
    for config in configs:
        plain = ("full", "concat", "late") if config.num_branches > 1 else ("full", config.combine, config.position)
        if (config.attention, config.combine, config.position) != plain:
            raise CheckpointError("joining wants models with full attention over branches that are fused late")
        alike = {"dim", "num_layers", "aggregation", "relation_algebra", "relation_layers", "relation_graph"}
        for name in sorted(alike):
            if getattr(config, name) != getattr(model, name):
                raise CheckpointError(f"joining wants models with the same {name}: these have others")
    branches = tuple(name for config in configs for name in config.branches)
    hidden = sum(len(member.hidden) for member in members)
    width = 2 * model.dim * len(branches)
    return model.with_options(
        branches=branches, relation_encoders="own", mlp_hidden=None if hidden == width else hidden
    )


def _put(member: _Member, weights: dict[str, Tensor], config: GammaConfig, num_members: int) -> None:
    own, first, dim = member.checkpoint.weights, member.first_branch, config.dim
    is_shared = member.checkpoint.config.relation_encoders == "shared"
    for name, tensor in own.items():
        room, _, rest = name.partition(".")
        if room == "branches":
            k, _, rest = rest.partition(".")
            weights[f"branches.{first + int(k)}.{rest}"] = tensor
        elif room == "relation_encoder":
            k, _, of_own = rest.partition(".")
            if is_shared:
                weights |= {f"relation_encoder.{first + i}.{rest}": tensor for i in range(member.num_branches)}
            else:
                weights[f"relation_encoder.{first + int(k)}.{of_own}"] = tensor
        elif name.startswith("attention.keys."):
            weights[f"attention.keys.{first + int(name.split('.')[2])}.weight"] = tensor
        elif name == "attention.context.weight":
            weights[name][:, first * dim : first * dim + tensor.shape[1]] += tensor
        elif name == "attention.temperature":
            weights[name] = tensor
    rows = slice(member.first_hidden, member.first_hidden + len(member.hidden))
    columns = slice(first * 2 * dim, first * 2 * dim + member.hidden.shape[1])
    weights["score.hidden.weight"][rows, columns] = member.hidden * (config.num_branches / member.num_branches)
    weights["score.hidden.bias"][rows] = own["score.hidden.bias"]
    weights["score.out.weight"][:, rows] = own["score.out.weight"] / num_members
    weights["score.out.bias"] += own["score.out.bias"] / num_members
