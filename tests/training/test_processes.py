"""Several processes on loopback (gloo). Each launch pays for two imports of torch, so few launches test much."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from gamma_kg.machine.processes import Processes

PROGRAM = Path(__file__).parent / "process_program.py"
SOURCES = Path(__file__).parents[2] / "src"


def launch(*program: str) -> list[tuple[int, str, str]]:
    """Exit code, stderr and stdout of two processes of a program, as torchrun starts them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = os.pathsep.join([str(SOURCES), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    processes = []
    for number in range(2):
        environment = {
            **os.environ,
            "RANK": str(number),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": path,
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen([sys.executable, *program], env=environment, text=True, **pipes))
    try:
        said = [process.communicate(timeout=120) for process in processes]
        return [(process.returncode, err, out) for process, (out, err) in zip(processes, said, strict=True)]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@dataclass
class Trained:
    """What the first launch left behind: it ends with the death of process 1."""

    folder: Path
    ends: list[tuple[int, str, str]]

    def saved(self, name: str) -> dict[str, dict[str, torch.Tensor]]:
        return torch.load(self.folder / name, weights_only=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("processes")
    return Trained(folder, launch(str(PROGRAM), "train", str(folder)))


def test_two_processes_with_half_the_batch_each_give_the_gradients_of_one_with_the_whole(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    import process_program

    expected = process_program.gradients(Processes())
    for number in range(2):
        found = trained.saved(f"train{number}.pt")["gradients"]
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            assert torch.allclose(found[name], gradient, atol=1e-6), name


def test_processes_keep_the_same_weights_and_only_the_first_one_writes(trained: Trained) -> None:
    first, second = (trained.saved(f"train{number}.pt")["weights"] for number in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    steps = [line for line in (trained.folder / "run" / "log.jsonl").read_text().splitlines() if '"train"' in line]
    assert len(steps) == 6
    assert '"samples": 48' in steps[-1]


def test_a_process_that_dies_ends_the_job_with_a_clear_message_and_the_run_resumes(trained: Trained) -> None:
    (code, stderr, _), (dead_code, *_) = trained.ends
    assert dead_code == 9
    assert code != 0
    assert "gamma: process 0 of 2 lost contact with another one" in stderr
    assert "--resume" in stderr
    for code, stderr, _ in launch(str(PROGRAM), "resume", str(trained.folder)):
        assert code == 0, stderr
    whole, resumed = trained.saved("train0.pt")["weights"], trained.saved("resume0.pt")["resumed"]
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_of_two_processes_one_selects_and_says_so_once(trained: Trained, family_folder: Path) -> None:
    run = trained.folder / "run"
    count = len(list((run / "checkpoints").iterdir()))
    (first, errors, said), (second, *silence) = launch(
        "-m", "gamma_kg", "select", str(run), "--datasets", str(family_folder), "--limit", "2"
    )
    assert (first, second) == (0, 0), errors
    assert silence == ["", ""]
    assert said.count("mean") == count > 0 and said.count("chosen: ") == 1
    assert (run / "selected.safetensors").is_file()
