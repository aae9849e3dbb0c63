"""Forking after computing: the child has none of its parent's threads, and would wait for them for ever.

Polars is asked for here, since it has such threads, and since it ends the process where it gets no memory.
"""

from __future__ import annotations

import os
from functools import cache

from gamma_kg.errors import DataError
from gamma_kg.machine.address_space import room

# Under a limit of memory: what polars takes to start its threads, and how often it holds what it is given.
POLARS_BYTES, POLARS_COPIES = 96 << 20, 12
# Whether polars has been used in this process, and whether this one was forked from one in which it had been.
_state = {"polars is used": False, "polars is lost": False}


@cache
def compute_alone_after_fork() -> None:
    """From now on a forked child computes with one thread, which needs nobody."""
    import torch

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def can_use_polars(num_bytes: int = 0) -> bool:
    """Whether polars can be used here on data of so many bytes: not in a fork, into which its threads do not come
    along, nor where a limit of memory would make it abort. To ask counts as using it.
    """
    if _state["polars is lost"] or not _has_room(num_bytes):
        return False
    _watch_forks()
    _state["polars is used"] = True
    return True


def need_polars(what: str, num_bytes: int = 0) -> None:
    """Fails where polars would hang or abort; `what` begins the error text."""
    if _state["polars is lost"]:
        raise DataError(
            f"{what}: this process was forked from one that had used polars, whose threads do not come along; start "
            "processes by spawn (multiprocessing.set_start_method), or read before forking"
        )
    if not can_use_polars(num_bytes):
        left = (room() or 0) >> 20
        raise DataError(f"{what}: not enough memory: the limit of memory (ulimit) leaves {left:,} MB")


def _has_room(num_bytes: int) -> bool:
    left = room()
    return left is None or left >= POLARS_BYTES + POLARS_COPIES * num_bytes


@cache
def _watch_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_lose_polars)


def _lose_polars() -> None:
    _state["polars is lost"] |= _state["polars is used"]
