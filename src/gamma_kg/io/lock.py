"""A lock on a file that ends with its process: the operating system lets go of it, however the process ended.

Stores, journals, run folders and fetched sets are written by one process at a time. A second one is told at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gamma_kg.errors import DataError, GammaError
from gamma_kg.io.atomic import cannot_write


class FileLock:
    """Held from `acquire` to `release`. The file beside what is locked is there only while it is held."""

    def __init__(self, path: str | Path, what: str, *, error: type[GammaError] = DataError) -> None:
        self.path, self._what, self._error = Path(path), what, error
        self._file: BinaryIO | None = None

    def acquire(self) -> FileLock:
        """Take the lock, or fail with a text that names the process that has it."""
        while self._file is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                file = self.path.open("a+b")
            except OSError as found:
                raise cannot_write(self.path, found, self._error) from found
            if not _try_lock(file):
                owner = _owner(file)
                file.close()
                raise self._error(f"{self._what}: another process{owner} is at work on it; wait until it has ended")
            # Its last owner may have deleted the file between our opening and our locking it.
            if _is_still(self.path, file):
                file.seek(0)
                file.truncate()
                with contextlib.suppress(OSError):  # the number serves the error text only; the disk may be full
                    file.write(str(os.getpid()).encode())
                    file.flush()
                self._file = file
            else:
                file.close()
        return self

    def release(self) -> None:
        """Let go; nothing happens if the lock is not held."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
            if sys.platform == "win32":  # an open file can't be deleted there
                with contextlib.suppress(OSError):
                    self.path.unlink()


@contextlib.contextmanager
def locked(path: str | Path, what: str, *, error: type[GammaError] = DataError) -> Iterator[None]:
    """Hold the lock for a block of code. `what` begins the error text of whoever comes second."""
    lock = FileLock(path, what, error=error).acquire()
    try:
        yield
    finally:
        lock.release()


def beside(path: Path) -> Path:
    """The lock file of a file or folder: hidden, next to it."""
    path = path if path.name else path.resolve()  # of `.` the folder that it stands for
    return path.with_name(f".{path.name}.lock")


def _try_lock(file: BinaryIO) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 30)  # far from the text, which others may then read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _owner(file: BinaryIO) -> str:
    with contextlib.suppress(OSError, ValueError):
        file.seek(0)
        return f" ({int(file.read())})"
    return ""


def _is_still(path: Path, file: BinaryIO) -> bool:
    try:
        there, here = os.stat(path), os.fstat(file.fileno())
    except OSError:
        return False
    return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)
