"""Parts of a model that training leaves as they are."""

from __future__ import annotations

from collections.abc import Sequence

from gamma_kg.errors import ConfigError
from gamma_kg.nn.model import GammaModel


def freeze(model: GammaModel, parts: Sequence[str]) -> None:
    """Parameters whose names begin with one of `parts` keep their values."""
    names = dict(model.named_parameters())
    for part in parts:
        chosen = [name for name in names if f"{name}.".startswith(f"{part}.")]
        if not chosen:
            known = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
            raise ConfigError(f"frozen: this model has no part {part!r}; its parts: {known}, or deeper, as branches.0")
        for name in chosen:
            names[name].requires_grad_(False)
    if not any(p.requires_grad for p in names.values()):
        raise ConfigError(f"frozen: nothing is left to train ({', '.join(parts)})")
