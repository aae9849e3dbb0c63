"""Leaving a process group: other threads get the interpreter first."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
import torch
import torch.distributed

from gamma_kg.machine.processes import leave_group


@pytest.fixture
def patient_threads() -> Iterator[None]:
    """Nobody is asked to hand over the interpreter: a thread runs until it waits for something."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


def test_a_thread_of_the_backend_can_drop_its_tensors_before_the_group_is_destroyed(
    monkeypatch: pytest.MonkeyPatch, patient_threads: None
) -> None:
    dropped: list[str] = []
    seen_by_destroy: list[str] = []
    result_is_there = threading.Lock()
    result_is_there.acquire()

    def backend() -> None:
        with result_is_there:
            dropped.append("tensors")

    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: seen_by_destroy.extend(dropped))
    thread = threading.Thread(target=backend)
    thread.start()
    result_is_there.release()
    leave_group()
    thread.join()
    assert seen_by_destroy == ["tensors"]
