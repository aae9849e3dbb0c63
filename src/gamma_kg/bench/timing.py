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


def best_times(tasks: Mapping[str, Task], rounds: int) -> dict[str, float]:
    """Seconds of the fastest run of each task; one round more, the first, warms up."""
    best = dict.fromkeys(tasks, float("inf"))
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            elapsed = time.perf_counter() - started
            if turn:
                best[name] = min(best[name], elapsed)
    return best


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


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    return 0
