"""Where results may go: a place that can't be, and one of the inputs, is refused before anything is computed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gamma_kg.errors import DataError
from gamma_kg.io.output import check_file, check_folder


def test_a_new_place_and_an_old_result_may_be_written(tmp_path: Path) -> None:
    (tmp_path / "old.tsv").write_text("x")
    (tmp_path / "in.tsv").write_text("y")
    check_file(tmp_path / "new" / "a.tsv", (tmp_path / "in.tsv", "demo", "sparql:http://x", None, "nul\0"))
    check_file(tmp_path / "old.tsv", (tmp_path / "in.tsv",))
    check_folder(tmp_path / "run")
    check_folder(tmp_path)


@pytest.mark.parametrize("name", ["in.tsv", "link.tsv", "hard.tsv", "sub/../in.tsv"])
def test_what_is_read_is_not_written_over(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "in.tsv").write_text("a\tr\tb\n")
    (tmp_path / "link.tsv").symlink_to("in.tsv")
    os.link(tmp_path / "in.tsv", tmp_path / "hard.tsv")
    with pytest.raises(DataError, match="is read by this command"):
        check_file(tmp_path / name, ("demo", str(tmp_path / "in.tsv")))


def test_a_folder_a_pipe_and_a_long_name_are_no_places_for_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path, "a folder is there"),
        (Path(), "the folder one is in"),
        (tmp_path / "pipe", "no ordinary file"),
        (tmp_path / ("x" * 300), "can't write"),
    ):
        with pytest.raises(DataError, match=words):
            check_file(path)


def test_a_file_is_no_place_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="a file is there"):
        check_folder(tmp_path / "file")
