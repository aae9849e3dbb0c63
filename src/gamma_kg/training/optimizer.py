"""AdamW, without the second that torch takes to load its compiler at the first use of any optimiser."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

# What torch hides from its compiler, by a wrapper that loads the compiler in order to hide it.
HIDDEN = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


class AdamW(torch.optim.AdamW):
    """torch's own, called beneath its wrappers: nothing here is compiled, so there is nothing to hide."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        return inspect.unwrap(torch.optim.AdamW.step)(self, closure)


def adamw(parameters: Iterable[nn.Parameter], learning_rate: float, weight_decay: float) -> AdamW:
    """The optimiser of every run."""
    for name in HIDDEN:
        plain = inspect.unwrap(getattr(torch.optim.Optimizer, name))
        if not hasattr(plain, "__dynamo_disable"):
            setattr(plain, "__dynamo_disable", plain)  # where the wrapper keeps what it calls
    return AdamW(parameters, lr=learning_rate, weight_decay=weight_decay, foreach=True)
