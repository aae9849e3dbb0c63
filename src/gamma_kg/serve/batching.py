"""One thread that owns the model: questions that come close together are answered as one batch.

A question waits for company only if the batch before it had some: who asks alone never waits. Questions with the
same `key` (graph and options) can share a batch; the answers are those of asking alone, bit for bit.

Answers are written to their callers, and new questions read, while the engine computes the next batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gamma_kg.errors import GammaError
from gamma_kg.machine import meanwhile
from gamma_kg.serve.turn import Turn


class QueueFullError(GammaError):
    """More is waiting than the server is told to hold."""


class StoppingError(GammaError):
    """The server is about to end."""


@dataclass(eq=False)
class _Waiting:
    key: Hashable | None  # None: a call that shares nothing
    item: Any
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class ModelThread:
    """Answers questions in batches and runs other calls in between, in the order in which they came."""

    def __init__(
        self,
        answer: Callable[[Any, Sequence[Any]], Sequence[Any]],
        turn: Turn,
        *,
        size: int,
        wait_seconds: float,
        queue: int,
    ) -> None:
        """`answer(key, items)` gives one result for each item, in their order."""
        self._answer, self._turn = answer, turn
        self._size, self._wait_seconds, self._queue = size, wait_seconds, queue
        self._waiting: deque[_Waiting] = deque()
        self._condition = threading.Condition()
        self._is_stopping = False
        self._last = 0  # questions in the last batch
        self.batches, self.questions = 0, 0
        self._thread = threading.Thread(target=self._run, name="gamma-model", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def ask(self, key: Hashable, item: Any) -> Any:
        """The answer to one question; it may be computed together with others of the same key."""
        return await self._put(key, item)

    async def call(self, function: Callable[[], Any]) -> Any:
        """Run something else that needs the model."""
        return await self._put(None, function)

    def stop(self) -> None:
        """Finishes what waits, then ends the thread."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()
        self._thread.join()

    async def _put(self, key: Hashable | None, item: Any) -> Any:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(key, item, loop, loop.create_future())
        with self._condition:
            if self._is_stopping:
                raise StoppingError("the server is ending; ask again when it is back")
            if len(self._waiting) >= self._queue:
                raise QueueFullError(f"{self._queue} questions wait already; ask again in a moment")
            self._waiting.append(waiting)
            self._condition.notify_all()
        return await waiting.future

    def _run(self) -> None:
        while batch := self._next():
            self.batches += 1
            self.questions += len(batch)
            if batch[0].key is not None:
                self._last = len(batch)
            if batch[0].key is None or self._turn.is_taken:  # when it will come to the engine is not known
                meanwhile.run()
            outcomes: Sequence[Any]
            try:
                with self._turn.of_a_person():
                    if batch[0].key is None:
                        outcomes = [batch[0].item()]
                    else:
                        outcomes = self._answer(batch[0].key, [waiting.item for waiting in batch])
            except Exception as error:
                outcomes = [error] * len(batch)
            meanwhile.run()  # where nothing was computed by the engine
            meanwhile.put(partial(_deliver, batch, outcomes))

    def _next(self) -> list[_Waiting]:
        """The oldest that waits, with all that can be answered with it; empty at the end."""
        while True:
            with self._condition:
                if batch := self._take():
                    return batch
            meanwhile.run()  # nobody waits for the engine, so the last answers wait for nothing
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._is_stopping)
                if not self._waiting:
                    return []
                if self._waiting[0].key is not None and self._last > 1:
                    self._condition.wait_for(
                        lambda: len(self._waiting) >= self._size or self._is_stopping, timeout=self._wait_seconds
                    )

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        rest: deque[_Waiting] = deque()
        for waiting in self._waiting:
            if waiting.future.cancelled():  # its caller went away
                continue
            shares = not batch or (waiting.key is not None and waiting.key == batch[0].key)
            if shares and len(batch) < self._size:
                batch.append(waiting)
            else:
                rest.append(waiting)
        self._waiting = rest
        return batch


def _deliver(batch: Sequence[_Waiting], outcomes: Sequence[Any]) -> None:
    """Hands the outcomes over to the loops that wait for them, with one wake-up each."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for waiting, outcome in zip(batch, outcomes, strict=True):
        by_loop.setdefault(waiting.loop, []).append((waiting.future, outcome))
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, pairs)
        except RuntimeError:  # the loop is closed: nobody waits any more
            continue


def _settle(pairs: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in pairs:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
