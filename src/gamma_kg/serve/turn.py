"""Whose turn it is with the model: people who wait come before jobs that run for minutes.

Who computes alone has all cores. Batches of questions may share them, each with its part of the threads: two that each
use all cores slow each other by far more than half. A job gives the model back after every few queries.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# A job that has waited for so many seconds comes in the order of the people: batches that overlap leave no gap for it.
PATIENCE = 1.0


class Turn:
    """A lock with three kinds of takers: one person alone, people who share, and a job, which waits for both."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._computing = 0
        self._is_alone = False  # whether the one that computes shares with nobody
        self._people = 0  # who wait, and of these those who want to be alone
        self._loners = 0

    def must_wait(self, *, shared: bool = False) -> bool:
        """Whether a person who came now would not get it at once."""
        is_computed = self._computing > 0
        return self._loners > 0 or (is_computed and self._is_alone) if shared else is_computed

    @contextmanager
    def of_a_person(self, *, shared: bool = False) -> Iterator[None]:
        with self._condition:
            self._queue_up(shared=shared)
        yield from self._hold()

    @contextmanager
    def of_a_job(self) -> Iterator[None]:
        with self._condition:
            if self._condition.wait_for(lambda: not self._computing and not self._people, timeout=PATIENCE):
                self._computing, self._is_alone = 1, True
            else:
                self._queue_up(shared=False)
        yield from self._hold()

    def _queue_up(self, *, shared: bool) -> None:
        self._people += 1
        self._loners += not shared  # nobody joins those who compute while one waits to be alone
        self._condition.wait_for(lambda: not self.must_wait(shared=shared))
        self._people -= 1
        self._loners -= not shared
        self._computing += 1
        self._is_alone = not shared

    def _hold(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._condition:
                self._computing -= 1
                self._condition.notify_all()
