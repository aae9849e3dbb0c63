"""Work that takes longer than a click: completion and calibration, one at a time, with progress and cancelling."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gamma_kg.errors import DataError, GammaError
from gamma_kg.serve.batching import QueueFullError, StoppingError

State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED: tuple[State, ...] = ("done", "failed", "cancelled")
KEPT = 50  # jobs that have ended
log = logging.getLogger("gamma_kg.serve")


class CancelledError(Exception):
    """Raised inside a job that was told to stop."""


class UnknownJobError(DataError):
    """No job has this id."""


@dataclass(eq=False)
class Job:
    """One piece of work. `result` is set before `state` becomes done."""

    id: str
    kind: Literal["complete", "calibrate"]
    graph: str
    about: str  # what it looks for, in words
    work: Callable[[Job], Any] = field(repr=False)
    wish: Mapping[str, str] = field(default_factory=dict)  # the fields of a form that asks for the same again
    state: State = "waiting"
    done: int = 0
    total: int = 0
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    is_cancelled: bool = False

    def progress(self, done: int, total: int) -> None:
        """Called from the work; ends it if somebody cancelled the job."""
        self.check()
        self.done, self.total = done, total

    def check(self) -> None:
        if self.is_cancelled:
            raise CancelledError

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def cancelling(self) -> bool:
        return self.is_cancelled and not self.has_ended


class Jobs:
    """A thread that works through a queue of jobs and remembers those that have ended."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: dict[str, Job] = {}
        self._queue: deque[Job] = deque()
        self._condition = threading.Condition()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="gamma-jobs", daemon=True)
        self._thread.start()

    def start(
        self,
        kind: Literal["complete", "calibrate"],
        graph: str,
        about: str,
        work: Callable[[Job], Any],
        wish: Mapping[str, str] | None = None,
    ) -> Job:
        with self._condition:
            if self._is_stopping:
                raise StoppingError("the server is ending; ask again when it is back")
            if sum(not job.has_ended for job in self._jobs.values()) >= self._limit:
                raise QueueFullError(f"{self._limit} jobs wait or run already; cancel one or ask again later")
            # The id is also what keeps one caller from another's job, so it can't be guessed.
            job = Job(secrets.token_urlsafe(9), kind, graph, about, work, wish or {})
            self._jobs[job.id] = job
            self._queue.append(job)
            self._forget_old()
            self._condition.notify_all()
        return job

    def __getitem__(self, id_: str) -> Job:
        found = self._jobs.get(id_)
        if found is None:
            raise UnknownJobError(f"no job has the id {id_[:80]!r}; those that ended long ago are forgotten")
        return found

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def cancel(self, job: Job) -> None:
        """A waiting job never starts, a running one ends within a few queries."""
        with self._condition:
            job.is_cancelled = True
            if job.state == "waiting":
                job.state = "cancelled"
                self._queue.remove(job)

    def stop(self, grace_seconds: float) -> None:
        """Lets the running job finish if it does so in time; what waits is cancelled."""
        with self._condition:
            self._is_stopping = True
            for job in self._queue:
                job.state, job.is_cancelled = "cancelled", True
            self._queue.clear()
            self._condition.notify_all()
        self._thread.join(grace_seconds)
        if self._thread.is_alive():
            for job in self:
                job.is_cancelled = True
            self._thread.join()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            started = time.monotonic()
            try:
                job.result = job.work(job)
                job.seconds, job.state = time.monotonic() - started, "done"
            except CancelledError:
                job.seconds, job.state = time.monotonic() - started, "cancelled"
            except GammaError as error:
                job.error, job.state = " ".join(str(error).split()), "failed"
            except Exception:
                # Nothing of the inside goes to the caller; the log has all of it.
                log.exception("job %s failed", job.id)
                job.error, job.state = "the server failed while working on this; its log says why", "failed"

    def _next(self) -> Job | None:
        with self._condition:
            self._condition.wait_for(lambda: self._queue or self._is_stopping)
            if not self._queue:
                return None
            job = self._queue.popleft()
            job.state = "running"
            return job

    def _forget_old(self) -> None:
        ended = [job.id for job in self._jobs.values() if job.has_ended]
        for id_ in ended[: max(0, len(ended) - KEPT)]:
            del self._jobs[id_]
