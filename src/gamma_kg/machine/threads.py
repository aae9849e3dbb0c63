"""With how many threads the engine computes for the thread that calls it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_own = threading.local()


def engine_threads() -> int:
    """All that torch may use, unless this thread was told to take part of them."""
    count: int | None = getattr(_own, "count", None)
    return torch.get_num_threads() if count is None else count


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """The engine computes with so many for this thread: several threads that call it share the cores."""
    before: int | None = getattr(_own, "count", None)
    _own.count = count
    try:
        yield
    finally:
        _own.count = before
