"""A journal on a disk that is full: one error, no second one when it is closed, and what was written is taken up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gamma_kg.errors import DataError
from gamma_kg.io.journal import Journal


def blocks(path: Path) -> list[dict[str, object]]:
    journal = Journal(path, {"graph": "g"})
    journal.close()
    return journal.blocks


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_one_error_and_closing_says_nothing_more(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", {"graph": "g"})
    journal.add({"n": 1})
    assert journal._file is not None
    journal._file.close()
    journal._file = open("/dev/full", "a", encoding="utf-8")
    with pytest.raises(DataError, match=r"can't write .*No space left on device"):
        journal.add({"n": 2})
    journal.close()
    assert blocks(tmp_path / "j") == [{"n": 1}]


def test_a_line_that_was_cut_off_is_dropped_and_written_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", {"graph": "g"})
    journal.add({"n": 1})
    journal.close()
    with (tmp_path / "j").open("a") as file:
        file.write('{"n": 2, "facts": [[1, 2')
    again = Journal(tmp_path / "j", {"graph": "g"})
    again.add({"n": 2})
    again.close()
    assert blocks(tmp_path / "j") == [{"n": 1}, {"n": 2}]


def test_a_block_that_was_damaged_is_done_again(tmp_path: Path) -> None:
    """One digit of a fact that is another one would end in the result, and the run would say nothing."""
    journal = Journal(tmp_path / "j", {"graph": "g"})
    for n in range(3):
        journal.add({"n": n})
    journal.close()
    content = (tmp_path / "j").read_bytes()
    (tmp_path / "j").write_bytes(content.replace(b'{"n": 1}', b'{"n": 7}'))
    assert blocks(tmp_path / "j") == [{"n": 0}]
    lines = content.splitlines(keepends=True)
    (tmp_path / "j").write_bytes(b"".join(lines[:2] + lines[3:]))
    assert blocks(tmp_path / "j") == [{"n": 0}], "the block after one that was lost is not taken for it"
    (tmp_path / "j").write_bytes(content.replace(b"graph", b"grapf"))
    with pytest.raises(DataError, match="delete it to start anew"):
        blocks(tmp_path / "j")
