"""GammaConfig: every variant of the model as data, and the presets that the paper's tables name."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from gamma_kg.errors import ConfigError, did_you_mean
from gamma_kg.io.frozen import FrozenConfig
from gamma_kg.kernels.algebra import ALGEBRAS

# Below it the attention is a hard choice; at zero it would turn round and prefer the worst branch.
MIN_TEMPERATURE = 0.01


class GammaConfig(FrozenConfig):
    """What the model computes. The defaults are the published GAMMA: complex and split-complex, late attention."""

    branches: tuple[str, ...] = ("complex", "split-complex")
    """Message function of each entity branch; names are the rows of `gamma_kg.kernels.algebra.ALGEBRAS`."""
    dim: int = Field(64, ge=1)
    """Channels D of every state."""
    num_layers: int = Field(6, ge=1)
    """Layers of each entity branch."""
    aggregation: Literal["sum", "mean", "pna"] = "sum"
    """What a node makes of its messages, in the relation encoder too. All but the sum is computed by plain torch."""
    relation_algebra: str = "real"
    """Message function of the relation encoder."""
    relation_layers: int | None = Field(None, ge=1)
    """Layers of the relation encoder; as many as `num_layers` when None."""
    relation_encoders: Literal["shared", "own"] = "shared"
    """One relation encoder for all branches (published), or one for each: every branch then has a query vector of its
    own, and the attention's context is made of all of them."""
    mlp_hidden: int | None = Field(None, ge=1)
    """Width of the score's hidden layer; as wide as its input when None."""
    attention: Literal["full", "no-query", "no-key", "none"] = "full"
    """What the branch weights depend on: query and entity; the entity against a learned constant; the query alone;
    or no weights at all (plain concatenation). Only with two or more branches."""
    combine: Literal["concat", "sum"] = "concat"
    """Weighted branch features side by side, or their weighted sum."""
    position: Literal["late", "early"] = "late"
    """Fuse once after the last layer, or after every layer."""
    attention_dim: int = Field(128, ge=1)
    """Width of the space in which context and keys are compared."""
    relation_graph: Literal["meetings", "pairs"] = "meetings"
    """Edges between relations: whose ends meet in an entity (published), or also who holds for the same "pairs"."""
    temperature: float = Field(1.0, ge=MIN_TEMPERATURE)
    """Start of the learned temperature κ, which never counts as less than 0.01. Not given by the paper."""
    uniform_mix: float = Field(0.1, ge=0, le=1)
    """λ: share of the uniform distribution in the branch weights. Not given by the paper."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the branch weights in training. Not given by the paper."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.branches:
            raise ValueError("branches: at least one message function is needed")
        for option, name in (
            *(("branches", name) for name in self.branches),
            ("relation_algebra", self.relation_algebra),
        ):
            if name not in ALGEBRAS:
                raise ValueError(f"{option}: no message function {name!r}{did_you_mean(name, ALGEBRAS)}")
            if self.dim % ALGEBRAS[name].components:
                parts = ALGEBRAS[name].components
                raise ValueError(
                    f"dim: {name!r} splits the channels into {parts} parts, so dim must be a multiple of {parts} "
                    f"(got {self.dim})"
                )
        if self.position == "early" and self.relation_encoders == "own":
            raise ValueError("position: early fusion mixes the branches' states, so they must share a relation encoder")
        if self.position == "early" and self.attention == "none" and self.combine == "concat":
            raise ValueError(
                "position: early fusion keeps the width of a branch, so it needs attention or combine = 'sum'"
            )
        return self

    @property
    def num_branches(self) -> int:
        return len(self.branches)

    @property
    def num_relation_encoders(self) -> int:
        return self.num_branches if self.relation_encoders == "own" else 1

    @property
    def query_width(self) -> int:
        """Q: channels of the states of relations, and so of a query vector; those of several encoders side by side."""
        return self.dim * self.num_relation_encoders


def _pair(first: str, second: str, **options: Any) -> GammaConfig:
    return GammaConfig(branches=(first, second), **options)


# One row per line of the paper's tables.
PRESETS: dict[str, GammaConfig] = {
    "gamma": GammaConfig(),
    "ultra": GammaConfig(branches=("real",)),
    "ultra-complex": GammaConfig(branches=("complex",)),
    "ultra-split-complex": GammaConfig(branches=("split-complex",)),
    "ultra-dual": GammaConfig(branches=("dual",)),
    "ultra-cap": GammaConfig(branches=("real",), dim=94, mlp_hidden=187),
    "ultra-att": _pair("real", "real"),
    "gamma-complex-dual": _pair("complex", "dual"),
    "gamma-split-complex-dual": _pair("split-complex", "dual"),
    "gamma-complex-real": _pair("complex", "real"),
    "gamma-split-complex-real": _pair("split-complex", "real"),
    "gamma-dual-real": _pair("dual", "real"),
    "gamma-no-attention": GammaConfig(attention="none"),
    "gamma-no-query": GammaConfig(attention="no-query"),
    "gamma-no-key": GammaConfig(attention="no-key"),
    "gamma-no-concat": GammaConfig(combine="sum"),
    "gamma-early": GammaConfig(position="early"),
}


def preset(name: str) -> GammaConfig:
    """The config of a published variant."""
    if name not in PRESETS:
        raise ConfigError(f"no preset {name!r}{did_you_mean(name, PRESETS)} Presets: {', '.join(PRESETS)}")
    return PRESETS[name]
