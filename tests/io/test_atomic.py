import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from gamma_kg.errors import DataError
from gamma_kg.io.atomic import put_in_place, temporary_name, write_text, write_whole


def test_a_file_gets_the_rights_of_any_new_file_whatever_its_writer_does(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.touch()

    def write_for_owner_alone(path: Path) -> None:
        path.unlink(missing_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))

    write_whole(tmp_path / "made", write_for_owner_alone)
    assert (tmp_path / "made").stat().st_mode == ordinary.stat().st_mode


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match="No space left on device; make room"):
        write_whole(path, fail)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file.txt"]


def test_a_folder_takes_the_place_of_one_with_files_in_it(tmp_path: Path) -> None:
    for name in ("made", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.bin").touch()
    put_in_place(tmp_path / "made", tmp_path / "old")
    assert os.listdir(tmp_path) == ["old"] and os.listdir(tmp_path / "old") == ["made.bin"]
    with pytest.raises(DataError, match=r"can't write .*old"):
        put_in_place(tmp_path / "gone", tmp_path / "old")
    assert os.listdir(tmp_path / "old") == ["made.bin"]


def test_what_a_killed_process_left_is_cleared_away_and_what_another_writes_is_not(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    mine = temporary_name(tmp_path / "other")
    left = mine.with_name(mine.name.replace(f".{os.getpid()}.", f".{int(dead.stdout)}."))
    elsewhere = left.with_name(left.name.replace(".other.", ".other.another-machine-"))
    for path in (mine, left, elsewhere):
        path.write_text("half")
    write_text(tmp_path / "file.txt", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, elsewhere.name, "file.txt"])


def test_a_full_disk_that_a_library_meets_is_the_same_one_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_text(path, "old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")

    with pytest.raises(DataError, match=r"can't write .*rows\.parquet: No space left on device; make room"):
        write_whole(path, fail)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["rows.parquet"]
