"""Where results may go: told before anything is computed, and never over what is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from gamma_kg.errors import DataError


def check_file(path: Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuses a place where no file can be put, and one of the files that the command reads."""
    found = _look(path)
    if found is None:
        return
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"{_named(path)}: a folder is there, and a file is to be written; give a name within it")
    if not stat.S_ISREG(found.st_mode):
        raise DataError(f"{path}: no ordinary file (a pipe or a device), which a result would take the place of")
    for name in inputs:
        if name is not None and _is_same(found, name):
            raise DataError(f"{path}: is read by this command and would be written over; choose another name")


def check_folder(path: Path) -> None:
    """Refuses a place where no folder can be."""
    found = _look(path)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise DataError(f"{path}: a file is there, and a folder is to be made; choose another name")


def _look(path: Path) -> os.stat_result | None:
    """What is there; None where nothing is."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # a name that is too long, a link that leads back to itself, no right to look
        raise DataError(f"can't write {_named(path)}: {error.strerror}") from error


def _is_same(found: os.stat_result, name: str | Path) -> bool:
    try:
        return os.path.samestat(found, os.stat(name))
    except (OSError, ValueError):  # not a file: an address, the name of a bundled graph
        return False


def _named(path: Path) -> str:
    return "the folder one is in" if path == Path() else str(path)[:200]
