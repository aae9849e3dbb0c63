"""In a process that was forked after polars had been used, nothing waits for its threads."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gamma_kg.data.read import encode_frame, read_triples
from gamma_kg.data.search import alphabetical
from gamma_kg.errors import DataError
from gamma_kg.io.rows import _write_parquet
from gamma_kg.machine import fork

FRAME = pl.DataFrame({"h": ["a", "b"], "r": ["r", "r"], "t": ["b", "c"]})


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process were the child: the hook that runs in it has run."""
    monkeypatch.setattr(fork, "_state", {"polars is used": False, "polars is lost": False})
    assert fork.can_use_polars()
    fork._lose_polars()


def test_tables_are_read_without_polars(tmp_path: Path, forked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl, "read_csv", lambda *arguments, **options: pytest.fail("polars was used"))
    (tmp_path / "f.tsv").write_text("a\tr\tb\nb\tr\tc\n")
    assert read_triples(tmp_path / "f.tsv").triples.tolist() == [[0, 0, 1], [1, 0, 2]]


def test_what_needs_polars_is_refused_in_a_sentence(tmp_path: Path, forked: None) -> None:
    FRAME.write_parquet(tmp_path / "f.parquet")
    for act in (
        lambda: read_triples(tmp_path / "f.parquet"),
        lambda: encode_frame(FRAME),
        lambda: _write_parquet(tmp_path / "g.parquet", []),
    ):
        with pytest.raises(DataError, match=r"was forked from one that had used polars.*spawn"):
            act()


def test_a_fork_before_polars_was_used_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork, "_state", {"polars is used": False, "polars is lost": False})
    fork._lose_polars()
    assert fork.can_use_polars()


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under a limit of address space that leaves 64 MB."""
    monkeypatch.setattr(fork, "room", lambda: 64 << 20)


def test_where_polars_would_abort_tables_are_read_without_it(
    tmp_path: Path, cramped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pl, "read_csv", lambda *arguments, **options: pytest.fail("polars was used"))
    (tmp_path / "f.tsv").write_text("a\tr\tb\nb\tr\tc\n")
    assert read_triples(tmp_path / "f.tsv").triples.tolist() == [[0, 0, 1], [1, 0, 2]]
    assert alphabetical([["b", "A"], ["é", "z"]]).tolist() == [1, 0, 3, 2]


def test_where_polars_would_abort_what_needs_it_is_refused(tmp_path: Path, cramped: None) -> None:
    FRAME.write_parquet(tmp_path / "f.parquet")
    for act in (
        lambda: read_triples(tmp_path / "f.parquet"),
        lambda: encode_frame(FRAME),
        lambda: _write_parquet(tmp_path / "g.parquet", []),
    ):
        with pytest.raises(DataError, match=r"not enough memory.*leaves 64 MB"):
            act()


def test_room_for_polars_grows_with_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork, "room", lambda: 200 << 20)
    assert fork.can_use_polars() and fork.can_use_polars(8 << 20)
    assert not fork.can_use_polars(32 << 20)
