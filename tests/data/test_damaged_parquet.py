"""Damaged Parquet files are refused in one line, also where polars panics and would print that on its own."""

from __future__ import annotations

import io
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from gamma_kg.cli import main
from gamma_kg.data.panics import panics_held_back
from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError

ROWS = {"head": [f"entity {i % 40}" for i in range(300)], "relation": ["r", "s", "t"] * 100, "tail": ["a", "b"] * 150}


def sound(compression: str) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(ROWS).write_parquet(buffer, compression=compression)
    return buffer.getvalue()


def damaged(content: bytes, rng: random.Random) -> Iterator[bytes]:
    """Cut short, filled with noise, with changed bytes anywhere, with changed bits in the footer."""
    for length in (4, 8, 50, len(content) // 2, len(content) - 8, len(content) - 1):
        yield content[:length]
    yield content[: len(content) // 3] + content[len(content) // 2 :]
    for _ in range(10):
        noise = rng.randbytes(200)
        yield b"PAR1" + noise + b"PAR1"
        yield b"PAR1" + noise + len(noise).to_bytes(4, "little") + b"PAR1"
    for _ in range(150):
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 3, 10))):
            changed[rng.randrange(4, len(changed) - 8)] = rng.randrange(256)
        yield bytes(changed)
    for _ in range(150):
        changed = bytearray(content)
        changed[rng.randrange(len(changed) - 400, len(changed) - 4)] ^= 1 << rng.randrange(8)
        yield bytes(changed)


# With polars 2.1 some of these panic: without care their backtraces stand on stderr.
@pytest.mark.parametrize("compression", ["uncompressed", "zstd", "snappy"])
def test_damage_is_read_or_refused_and_nothing_is_printed(
    compression: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, num_refused = tmp_path / "f.parquet", 0
    for content in damaged(sound(compression), random.Random(compression)):
        path.write_bytes(content)
        try:
            read_triples(path)
        except DataError as error:
            num_refused += 1
            assert "\n" not in str(error) and "f.parquet" in str(error)
    assert num_refused > 50
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("option", ["graph", "queries"])
def test_the_command_prints_one_line(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(sound("zstd")[:-200])
    asked = [str(path), "--head", "a", "--relation", "r"] if option == "graph" else ["demo", "--queries", str(path)]
    monkeypatch.setattr("sys.argv", ["gamma", "predict", *asked, "--json"])
    with pytest.raises(SystemExit) as stop:
        main()
    lines = capfd.readouterr().err.splitlines()
    assert stop.value.code == 2
    assert len(lines) == 1 and "not a sound Parquet file" in lines[0]


def test_a_panic_is_held_back_and_everything_else_comes_out(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(pl.exceptions.PanicException), panics_held_back():
        os.write(2, b"thread 'x' panicked at somewhere.rs:1\n")
        raise pl.exceptions.PanicException("somewhere")
    with panics_held_back():
        os.write(2, b"a warning\n")
    assert capfd.readouterr().err == "a warning\n"


def test_without_a_standard_error_descriptor_2_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "__stderr__", None)
    with panics_held_back():
        os.write(2, b"a file of somebody")
        assert capfd.readouterr().err == "a file of somebody"


def test_sizes_that_would_end_the_process_are_refused(tmp_path: Path) -> None:
    """A page that claims more values than its column: polars asks for the memory, and nothing catches that."""
    pl.DataFrame({"h": ["a", "b"], "r": ["r", "r"], "t": ["b", "c"]}).write_parquet(tmp_path / "f.parquet")
    whole = (tmp_path / "f.parquet").read_bytes()
    claims = [b"\x15\x04", b"\x15\x0b"]  # field 1 of a page's head: 2 values (zigzag), and -6
    changed = 0
    for at in range(4, len(whole) - 8):
        if whole[at : at + 2] == claims[0]:
            (tmp_path / "f.parquet").write_bytes(whole[:at] + claims[1] + whole[at + 2 :])
            try:
                read_triples(tmp_path / "f.parquet")
            except DataError as error:
                changed += "it claims -6 where at most" in str(error)
    assert changed


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
def test_files_of_other_writers_are_sound(tmp_path: Path, version: str, compression: str) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    count = 30_000
    names = [f"entity {'x' * (i % 50)} {i}" for i in range(count)]
    columns = {"head": names, "relation": ["r"] * count, "tail": names[::-1], "list": [[i, i] for i in range(count)]}
    parquet.write_table(
        arrow.table(columns),
        tmp_path / "f.parquet",
        data_page_version=version,
        compression=compression,
        row_group_size=7_000,
        data_page_size=4_000,
    )
    assert len(read_triples(tmp_path / "f.parquet").triples) == count
