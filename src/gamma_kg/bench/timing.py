"""Clocks: best of several rounds in which all tasks take turns, so that a slow minute hits all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch

from gamma_kg.kernels.native import release_freed_memory

Task = Callable[[], object]


class BestTimes:
    """Seconds of the fastest run of each task, over as many rounds as are asked for, at whatever times.

    A neighbour on the same host can take a good part of the caches for half a minute. Rounds that are spread over
    minutes find the moments between.
    """

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self.tasks = tasks
        self.seconds = dict.fromkeys(tasks, float("inf"))

    def measure(self, rounds: int) -> None:
        """So many rounds more; one besides, the first, warms up."""
        for turn in range(rounds + 1):
            for name, task in self.tasks.items():
                started = time.perf_counter()
                task()
                elapsed = time.perf_counter() - started
                if turn:
                    self.seconds[name] = min(self.seconds[name], elapsed)


def best_times(tasks: Mapping[str, Task], rounds: int) -> dict[str, float]:
    """Seconds of the fastest run of each task, all rounds at once."""
    times = BestTimes(tasks)
    times.measure(rounds)
    return times.seconds


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch, and with it the engine, use `count` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def peak_memory_of(task: Task) -> int | None:
    """Bytes by which the process grows at most while the task runs; None where the system does not tell."""
    gc.collect()
    release_freed_memory()  # what is kept for reuse would hide the task's own
    if not _reset_peak():
        return None
    before = _status("VmRSS")
    task()
    return max(_status("VmHWM") - before, 0)


def own_memory() -> dict[str, int]:
    """Bytes of the process that are its own, mapped files left out; nothing where the system does not tell."""
    own = _status("RssAnon")
    return {"own bytes": own} if own else {}


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(field: str) -> int:
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.is_file() else ():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    return 0
