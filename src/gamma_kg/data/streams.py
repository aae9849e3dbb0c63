"""From a path to an opened file: unpacked, and known by its first bytes.

What can go wrong with a file (absent, forbidden, truncated, changed while it is read, of another kind) becomes a
`DataError` that names the file.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from gamma_kg.data.unpacking import CountingRaw, GuardedRaw, Progress, ZstdRaw
from gamma_kg.errors import DataError, did_you_mean

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PARQUET_MAGIC = b"PAR1"
# First bytes of files that people hand over by mistake, and what to tell them.
FOREIGN_MAGIC = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; unpack it or export it as CSV",
    b"%PDF": "a PDF",
    b"\x89PNG": "a PNG picture",
    b"SQLite format 3": "an SQLite database; export the table as CSV",
    b"\x89HDF": "an HDF5 file",
    b"BZh": "bzip2 data; unpack it first",
    b"\xfd7zXZ": "xz data; unpack it first",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"\x80\x02": "a Python pickle",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"\x7fELF": "a program",
}


@dataclass
class Input:
    """One opened file: its name for error texts, its unpacked bytes, and its first bytes."""

    name: str
    stream: io.BufferedIOBase
    start: bytes
    is_packed: bool


@contextmanager
def open_input(path: Path | None, progress: Progress) -> Iterator[Input]:
    """The file unpacked and ready to read; `None` is standard input. Read errors become `DataError`."""
    name = "standard input" if path is None else str(path)
    with reading_errors(name):
        with sys.stdin.buffer if path is None else path.open("rb") as file:
            counted = CountingRaw(cast(BinaryIO, file), progress)
            raw = io.BufferedReader(counted, 1 << 20)
            start = raw.peek(64)[:64]
            stream: io.BufferedReader[Any] = raw
            if start.startswith(GZIP_MAGIC):
                unpacked = gzip.GzipFile(fileobj=raw)
                stream = io.BufferedReader(GuardedRaw(cast(BinaryIO, unpacked), counted, name), 1 << 20)
            elif start.startswith(ZSTD_MAGIC):
                frames = io.BufferedReader(ZstdRaw(cast(BinaryIO, raw)), 1 << 20)
                stream = io.BufferedReader(GuardedRaw(cast(BinaryIO, frames), counted, name), 1 << 20)
            elif path is not None and start and path.suffix in (".gz", ".zst", ".zstd"):
                kind = "gzip" if path.suffix == ".gz" else "zstd"
                raise DataError(f"{name}: the name says {kind}, but the content is not {kind}; rename the file")
            before = _state(file, path, start)
            yield Input(name, stream, stream.peek(4096)[:4096], is_packed=stream is not raw)
            if _state(file, path, start) != before:
                raise DataError(f"{name}: changed while it was read, so half of it may be old; run the command again")


def _state(file: BinaryIO, path: Path | None, start: bytes) -> tuple[int, ...]:
    """What changes when somebody writes to the file. A file renamed over it does no harm: the old one is read on.

    But for Parquet, which is opened by its name again and again.
    """
    if path is None:  # standard input, which may be no file at all
        return ()
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        return ()
    if start.startswith(PARQUET_MAGIC):
        found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def reading_errors(name: str) -> Iterator[None]:
    """Turns the errors of the operating system and of unpacking into `DataError`."""
    try:
        yield
    except EOFError as error:
        raise DataError(f"{name}: the compressed data ends too early; the file is truncated, get it again") from error
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise DataError(f"{name}: the compressed data is damaged ({error}); get the file again") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DataError(f"{name}: the symbolic link leads back to itself") from error
        if isinstance(error, PermissionError):
            raise DataError(f"{name}: no permission to read it") from error
        if isinstance(error, FileNotFoundError):
            raise DataError(missing_file(Path(name))) from error
        raise DataError(f"{name}: can't be read ({error.strerror or error})") from error


def missing_file(path: Path) -> str:
    """'no such file' with the nearest names in the same folder."""
    if path.is_symlink():
        return f"{path}: a symbolic link to {path.readlink()}, where no file is"
    folder = path.parent
    if not folder.is_dir():
        return f"no such file: {path} (there is no folder {folder} either)"
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        names = []
    return f"no such file: {path}{did_you_mean(path.name, names)}"


def refuse_foreign(opened: Input) -> None:
    """Fails with a helpful text for a file that is plainly of another kind."""
    for magic, kind in FOREIGN_MAGIC.items():
        if opened.start.startswith(magic):
            raise DataError(f"{opened.name}: expected triples, but this is {kind}")
