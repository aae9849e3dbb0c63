"""Signals that end a run politely."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """A list that SIGINT and SIGTERM are noted in, instead of ending the process; a second one acts at once."""
    noted: list[int] = []
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        noted.append(number)
        signal.signal(number, before[number])

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.getsignal(number)
            signal.signal(number, note)
    except ValueError:  # not the main thread: nobody sends us signals
        before.clear()
    try:
        yield noted
    finally:
        for changed, handler in before.items():
            signal.signal(changed, handler)
