"""The threads that own the model: questions that come close together are answered as one batch.

A question waits for company only if the batch before it had some: who asks alone never waits. Questions with the
same `key` (graph and options) can share a batch; the answers are those of asking alone, bit for bit.

Batches run in lanes, a thread each: while one is in Python (ids, rules, names), another is in the engine, each with its
part of the engine's threads. A question that nobody shares the model with gets all of them.

Answers are written to their callers, and new questions read, while the engine computes the next batch.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gamma_kg.errors import GammaError
from gamma_kg.machine import meanwhile
from gamma_kg.machine.threads import engine_threads, limited_threads
from gamma_kg.serve.turn import Turn

# How much of a crowd is still expected after each batch in which it did not come.
FORGETS = 0.75


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


class _Batch(NamedTuple):
    waiting: list[_Waiting]
    is_shared: bool  # computed beside others, with a part of the threads

    @property
    def key(self) -> Hashable | None:
        return self.waiting[0].key


class ModelThreads:
    """Answer questions in batches and run other calls in between, in the order in which they came."""

    def __init__(
        self,
        answer: Callable[[Any, Sequence[Any]], Sequence[Any]],
        turn: Turn,
        *,
        size: int,
        wait_seconds: float,
        queue: int,
        lanes: int = 1,
    ) -> None:
        """`answer(key, items)` gives one result for each item, in their order; in each lane at the same time."""
        self._answer, self._turn = answer, turn
        self._size, self._wait_seconds, self._queue = size, wait_seconds, queue
        self._waiting: deque[_Waiting] = deque()
        self._lock = threading.RLock()
        self._wakes = [threading.Condition(self._lock) for _ in range(lanes)]
        self._is_stopping = False
        self._lanes = self._idle = lanes
        self._computed = 0  # questions that are being answered
        self._crowd = 0.0  # the same with those who wait, of late
        self.batches, self.questions = 0, 0
        self._threads = [
            threading.Thread(target=self._run, args=(lane,), name=f"gamma-model-{lane}", daemon=True)
            for lane in range(lanes)
        ]
        for thread in self._threads:
            thread.start()

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
        """Finishes what waits, then ends the threads."""
        with self._lock:
            self._is_stopping = True
            for wake in self._wakes:
                wake.notify()
        for thread in self._threads:
            thread.join()

    async def _put(self, key: Hashable | None, item: Any) -> Any:
        loop = asyncio.get_running_loop()
        waiting = _Waiting(key, item, loop, loop.create_future())
        with self._lock:
            if self._is_stopping:
                raise StoppingError("the server is ending; ask again when it is back")
            if len(self._waiting) >= self._queue:
                raise QueueFullError(f"{self._queue} questions wait already; ask again in a moment")
            self._waiting.append(waiting)
            for lane, wake in enumerate(self._wakes):
                if self._wants(lane):  # a thread that wakes for nothing takes its turn in Python all the same
                    wake.notify()
        return await waiting.future

    def _run(self, lane: int) -> None:
        while batch := self._next(lane):
            if batch.key is None or self._turn.must_wait(shared=batch.is_shared):
                meanwhile.run()  # when it will come to the engine is not known
            outcomes: Sequence[Any]
            try:
                outcomes = self._outcomes(batch)
            except Exception as error:
                outcomes = [error] * len(batch.waiting)
            with self._lock:
                self._idle += 1
                self._computed -= len(batch.waiting)
            meanwhile.run()  # where nothing was computed by the engine
            meanwhile.put(partial(_deliver, batch.waiting, outcomes))

    def _outcomes(self, batch: _Batch) -> Sequence[Any]:
        threads = max(1, engine_threads() // self._lanes) if batch.is_shared else engine_threads()
        with self._turn.of_a_person(shared=batch.is_shared), limited_threads(threads):
            if batch.key is None:
                return [batch.waiting[0].item()]
            return self._answer(batch.key, [waiting.item for waiting in batch.waiting])

    def _next(self, lane: int) -> _Batch | None:
        """The oldest that waits, with all that can be answered with it; None at the end."""
        while True:
            with self._lock:
                if batch := self._take():
                    return batch
            meanwhile.run()  # nobody waits for the engine, so the last answers wait for nothing
            with self._lock:
                self._wakes[lane].wait_for(lambda: self._is_stopping or self._wants(lane))
                if not self._waiting:
                    return None
                if self._waiting[0].key is not None and self._crowd >= 2:
                    self._wakes[lane].wait_for(self._has_company, timeout=self._wait_seconds)

    def _wants(self, lane: int) -> bool:
        """Whether there is something for a lane: one question alone always goes to the first, whose engine is warm."""
        return len(self._waiting) > (1 if lane and not self._computed else 0)

    def _has_company(self) -> bool:
        """Whether as many wait as a lane's share of those who asked a moment ago."""
        return self._is_stopping or len(self._waiting) >= min(self._size, math.ceil(self._crowd / self._lanes))

    def _take(self) -> _Batch | None:
        waiting = [one for one in self._waiting if not one.future.cancelled()]  # else its caller went away
        if not waiting:
            self._waiting.clear()
            return None
        key = waiting[0].key
        fitting = waiting[:1] if key is None else [one for one in waiting if one.key == key]
        # Lanes that have nothing to do share what waits: each would else compute with its part of the threads alone.
        batch = fitting[: min(self._size, -(-len(fitting) // self._idle))]
        is_shared = self._lanes > 1 and key is not None and (self._computed > 0 or len(waiting) > 1)
        taken = set(map(id, batch))
        self._waiting = deque(one for one in waiting if id(one) not in taken)
        self._idle -= 1
        self._computed += len(batch)
        if key is not None:
            self._crowd = max(self._computed + len(self._waiting), FORGETS * self._crowd)
        self.batches += 1
        self.questions += len(batch)
        return _Batch(batch, is_shared)


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
