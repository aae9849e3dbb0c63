import os
from pathlib import Path

import pytest

from gamma_kg.errors import DataError
from gamma_kg.io.atomic import write_text, write_whole


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

    with pytest.raises(DataError, match="No space left"):
        write_whole(path, fail)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file.txt"]
