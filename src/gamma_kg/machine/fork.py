"""Forking after computing: the child has none of its parent's threads, and would wait for them for ever."""

from __future__ import annotations

import os
from functools import cache


@cache
def compute_alone_after_fork() -> None:
    """From now on a forked child computes with one thread, which needs nobody."""
    import torch

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
