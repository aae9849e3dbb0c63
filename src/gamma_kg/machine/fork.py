"""Forking after computing: the child has none of its parent's threads, and would wait for them for ever."""

from __future__ import annotations

import os
from functools import cache

from gamma_kg.errors import DataError

# Whether polars has been used in this process, and whether this one was forked from one in which it had been.
_state = {"polars is used": False, "polars is lost": False}


@cache
def compute_alone_after_fork() -> None:
    """From now on a forked child computes with one thread, which needs nobody."""
    import torch

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def can_use_polars() -> bool:
    """Whether polars can be used here: its threads do not come along into a fork. To ask counts as using it."""
    if _state["polars is lost"]:
        return False
    _watch_forks()
    _state["polars is used"] = True
    return True


def need_polars(what: str) -> None:
    """Fails where polars would hang; `what` begins the error text."""
    if not can_use_polars():
        raise DataError(
            f"{what}: this process was forked from one that had used polars, whose threads do not come along; start "
            "processes by spawn (multiprocessing.set_start_method), or read before forking"
        )


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_lose_polars)


def _lose_polars() -> None:
    _state["polars is lost"] |= _state["polars is used"]
