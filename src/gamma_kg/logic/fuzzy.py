"""And, or, not on degrees of membership in 0..1: rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gamma_kg.errors import ConfigError, did_you_mean

Connective = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Logic:
    """How two degrees are joined; not is 1 − x in all of them."""

    name: str
    both: Connective
    either: Connective


LOGICS = {
    logic.name: logic
    for logic in (
        Logic("product", lambda x, y: x * y, lambda x, y: x + y - x * y),
        Logic("godel", torch.minimum, torch.maximum),
        Logic("lukasiewicz", lambda x, y: (x + y - 1).clamp_min(0), lambda x, y: (x + y).clamp_max(1)),
    )
}


def logic_named(name: str) -> Logic:
    if name not in LOGICS:
        raise ConfigError(f"no logic is named {name!r}{did_you_mean(name, LOGICS)}; choose from {', '.join(LOGICS)}")
    return LOGICS[name]
