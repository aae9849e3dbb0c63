"""Whose turn it is with the model: people who wait come before jobs that run for minutes.

Two threads that compute at once slow each other by far more than half (both use all cores), so only one ever does.
A job gives the model back after every few queries.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turn:
    """A lock with two kinds of takers; a job waits as long as a person does."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._is_taken = False
        self._people = 0

    @property
    def is_taken(self) -> bool:
        return self._is_taken

    @contextmanager
    def of_a_person(self) -> Iterator[None]:
        with self._condition:
            self._people += 1
            self._condition.wait_for(lambda: not self._is_taken)
            self._people -= 1
            self._is_taken = True
        yield from self._hold()

    @contextmanager
    def of_a_job(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._is_taken and not self._people)
            self._is_taken = True
        yield from self._hold()

    def _hold(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._condition:
                self._is_taken = False
                self._condition.notify_all()
