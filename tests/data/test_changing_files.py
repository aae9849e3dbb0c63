"""A file that changes while it is read is refused: half of the facts would be old ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gamma_kg.data import lines
from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError

OLD = "a\tr\tb\n" * 400_000
NEW = "c\ts\td\n" * 400_000


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "f.tsv"
    path.write_text(OLD)
    monkeypatch.setattr(lines, "CHUNK_BYTES", 1 << 16)
    return path


def while_reading(monkeypatch: pytest.MonkeyPatch, act) -> None:
    """Does something once, in the middle of reading."""
    check, calls = lines.check_text, []

    def checked(*arguments: object) -> None:
        calls.append(1)
        if len(calls) == 4:
            act()
        check(*arguments)

    monkeypatch.setattr(lines, "check_text", checked)


def test_a_file_written_over_while_it_is_read_is_refused(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    while_reading(monkeypatch, lambda: facts.write_text(NEW))
    with pytest.raises(DataError, match=r"f\.tsv: changed while it was read"):
        read_triples(facts)


def test_a_file_renamed_over_it_is_not_seen_and_the_old_one_is_read_whole(
    facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (facts.parent / "new").write_text(NEW)
    while_reading(monkeypatch, lambda: os.replace(facts.parent / "new", facts))
    assert sorted(read_triples(facts).entities) == ["a", "b"]
    assert sorted(read_triples(facts).entities) == ["c", "d"]
