"""By what processes talk: it follows from the device they compute on, not from what the machine happens to have."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed

from gamma_kg.errors import ConfigError
from gamma_kg.machine.processes import join_processes


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The second of two processes on a machine with two GPUs, none of which is real; the groups that were begun."""
    groups: list[str] = []

    def begin(backend: str, **options: Any) -> None:
        groups.append(backend)

    for name, value in {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    for name, value in {"is_available": True, "device_count": 2, "current_device": 1, "set_device": None}.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.distributed, "init_process_group", begin)
    monkeypatch.setattr(torch.distributed, "destroy_process_group", lambda: None)
    return groups


@pytest.mark.parametrize(("device", "backend"), [("cpu", "gloo"), ("cuda", "nccl"), ("auto", "nccl")])
def test_processes_talk_by_nccl_only_where_they_compute_on_gpus(begun: list[str], device: str, backend: str) -> None:
    with join_processes(device) as processes:
        assert (processes.number, processes.count) == (1, 2)
    assert begun == [backend]


def test_a_process_without_a_gpu_of_its_own_is_refused(begun: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ConfigError, match="at most one process per GPU"), join_processes("cuda"):
        pass
    assert not begun
