"""AdamW, without the second that torch takes to load its compiler at the first use of any optimiser."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

# What torch hides from its compiler, by a wrapper that loads the compiler in order to hide it.
WRAPPED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def adamw(parameters: Iterable[nn.Parameter], learning_rate: float, weight_decay: float) -> torch.optim.AdamW:
    """The optimiser of every run. Nothing here is compiled, so there is nothing to hide."""
    for name in WRAPPED:
        plain = getattr(getattr(torch.optim.Optimizer, name), "__wrapped__", None)
        if plain is not None and not hasattr(plain, "__dynamo_disable"):
            setattr(plain, "__dynamo_disable", plain)
    return torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=weight_decay, foreach=True)
