"""How many queries to ask next, so that a run ends in time: a block is asked only if it will be done by then."""

from __future__ import annotations

import time

FIRST = 1  # nothing is known yet of how long a query takes: on a large graph the first of a relation takes seconds
GROWTH = 4


class OutOfTimeError(Exception):
    """The time is used up before it was settled what to ask."""


class Pace:
    """Blocks of at most `most` queries. Without a time to keep to, all are as large as that."""

    def __init__(self, most: int, seconds: float | None) -> None:
        self._most, self._seconds = most, seconds
        self._started = time.monotonic()
        self._asked_at = self._started
        self._size = 0
        self._spent = 0.0

    def require_time(self) -> None:
        """Ends what comes before the first block where no time is left for that."""
        if self._seconds is not None and time.monotonic() - self._started > self._seconds:
            raise OutOfTimeError

    def next(self) -> int:
        """The size of the next block, called when the last one is done; 0 if there is no time for one."""
        if self._seconds is None:
            return self._most
        now = time.monotonic()
        left = self._seconds - (now - self._started)
        if not self._size:
            self._size = min(FIRST, self._most) if left > 0 else 0
        else:
            # What the run before the last block was slower by (a first query of a relation) may come again.
            self._spent = max((now - self._asked_at) / self._size, self._spent / 2)
            in_time = int(min(left / max(self._spent, 1e-9), self._most))
            self._size = min(in_time, GROWTH * self._size) if left > 0 else 0
        self._asked_at = now
        return self._size
