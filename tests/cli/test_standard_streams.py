"""Output that is closed, full or of another encoding: one line or the result, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GAMMA = f"{sys.executable} -m gamma_kg"


def _run(script: str, folder: Path, **changes: str) -> subprocess.CompletedProcess[bytes]:
    words = ["bash", "-c", script.replace("GAMMA", GAMMA)]
    return subprocess.run(words, cwd=folder, env=os.environ | changes, capture_output=True, timeout=300)


@pytest.mark.parametrize(
    ("stream", "words"), [("> /dev/full", b"No space left"), (">&-", b"standard output is closed")]
)
def test_results_that_go_nowhere_are_an_error(stream: str, words: bytes, tmp_path: Path) -> None:
    done = _run(f"GAMMA --version {stream}", tmp_path)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count(b"\n") == 1


def test_a_command_without_streams_does_its_work(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("a\tr\tb\n")
    assert _run("GAMMA index f.tsv --out g.gamma <&- >&- 2>&-", tmp_path).returncode == 0
    assert (tmp_path / "g.gamma" / "header.json").exists()


def test_names_that_the_terminal_lacks_are_written_another_way(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("é→\tr\tü\n")
    done = _run("GAMMA describe f.tsv --no-time", tmp_path, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0 and b"Traceback" not in done.stderr and b"\\u2192" in done.stdout
