"""A little of the campaign of `benchmarks/reader_faults.py`: damaged files of every kind are read or refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import reader_faults

from gamma_kg.errors import GammaError

READERS = reader_faults.readers()


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name: str) -> None:
    outcome = reader_faults.fuzz(name, 30, seed=7)
    assert outcome.tried == 30 and not outcome.wrong


DEEP = b"[" * 100_000


@pytest.mark.parametrize("name", ["jsonl", "query file", "accepted", "config", "journal", "result"])
def test_what_is_nested_deeply_is_refused(name: str, tmp_path: Path) -> None:
    suffix = {"config": "toml", "journal": "progress", "result": "json"}.get(name, "jsonl")
    path = tmp_path / f"deep.{suffix}"
    path.write_bytes((b"a = " if name == "config" else b"") + DEEP)
    with pytest.raises(GammaError):
        READERS[name].read(path)


def test_a_reader_that_fails_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        if path.read_bytes() != b"sound":
            raise ValueError("not mine")

    monkeypatch.setattr(reader_faults, "readers", lambda: {"bad": reader_faults.Reader(lambda: {"f": b"sound"}, fails)})
    outcome = reader_faults.fuzz("bad", 5, kept=tmp_path)
    assert outcome.wrong and "ValueError: not mine" in outcome.wrong[0] and list(tmp_path.glob("bad-0-*"))
