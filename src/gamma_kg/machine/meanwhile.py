"""Work that another thread can do while this one is in the engine.

Two threads of Python take turns, and one that calls many small functions of a library loses its turn at each of them.
So what wakes another thread is best done at the moment when this one leaves Python for a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

_kept = threading.local()


def put(work: Callable[[], None]) -> None:
    """Have this done when the engine next computes for this thread; once, and before anything that was put later."""
    _list().append(work)


def run() -> None:
    """Do what was put: the engine is about to compute, or there is nothing left to compute."""
    kept = _list()
    while kept:
        kept.pop(0)()


def _list() -> list[Callable[[], None]]:
    found: list[Callable[[], None]] | None = getattr(_kept, "works", None)
    if found is None:
        found = _kept.works = []
    return found
