from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gamma_kg.errors import DataError
from gamma_kg.io.journal import Journal
from gamma_kg.io.lock import FileLock, locked

HOLD = """
import sys
from gamma_kg.io.lock import FileLock
lock = FileLock(sys.argv[1], "child").acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_has_one_holder_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with locked(path, "first"), pytest.raises(DataError, match=r"second: another process \(\d+\) is at work on it"):
        FileLock(path, "second").acquire()
    assert not path.exists()
    with locked(path, "third"):
        assert path.exists()


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        with pytest.raises(DataError, match=str(child.pid)):
            FileLock(path, "parent").acquire()
        child.kill()
    assert path.exists(), "a killed process can't clear away"
    with locked(path, "parent"):
        pass


def test_a_second_run_on_a_journal_is_refused_and_deletes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.progress"
    first = Journal(path, {"graph": "a"})
    first.add({"queries": 1})
    with pytest.raises(DataError, match="another process"):
        Journal(path, {"graph": "a"})
    first.add({"queries": 2})
    first.close()
    again = Journal(path, {"graph": "a"})
    assert again.blocks == [{"queries": 1}, {"queries": 2}]
    again.remove()
    assert list(tmp_path.iterdir()) == []
