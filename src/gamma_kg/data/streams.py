"""From a path to clean bytes: finds the files, unpacks gzip and zstd, and cuts text into chunks of whole lines.

Everything here turns what can go wrong with a file (absent, forbidden, truncated, binary, wrongly encoded)
into a `DataError` that names the file and, for text, the line and column.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from gamma_kg.errors import DataError, did_you_mean

CHUNK_BYTES = 1 << 25
# A line longer than this is no triple; without a bound, a binary file without newlines would fill the memory.
MAX_LINE_BYTES = 1 << 24

# Graphs pack to a tenth or a fiftieth; what unpacks to more than this many times its size is made to do harm.
MAX_UNPACKED_RATIO = 300
MAX_UNPACKED_BYTES = 1 << 27

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
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
UTF8_BOM = b"\xef\xbb\xbf"

Progress = Callable[[int], None]


@dataclass
class Input:
    """One opened file: its name for error texts, its unpacked bytes, and its first bytes."""

    name: str
    stream: io.BufferedIOBase
    start: bytes
    is_packed: bool


class _PassingRaw(io.RawIOBase):
    """Passes reads on; `passed` is told how many bytes each one gave."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        block = self._stream.read(len(view))
        view[: len(block)] = block
        self.count += len(block)
        self.passed(len(block))
        return len(block)

    def passed(self, num_bytes: int) -> None:
        raise NotImplementedError


class _CountingRaw(_PassingRaw):
    """Tells `progress` how many bytes of the file have been read."""

    def __init__(self, stream: BinaryIO, progress: Progress) -> None:
        super().__init__(stream)
        self._progress = progress

    def passed(self, num_bytes: int) -> None:
        self._progress(num_bytes)


class _GuardedRaw(_PassingRaw):
    """Passes unpacked bytes on until they are out of proportion: a few kilobytes can unpack to more than any disk."""

    def __init__(self, stream: BinaryIO, packed: _CountingRaw, name: str) -> None:
        super().__init__(stream)
        self._packed = packed
        self._name = name

    def passed(self, num_bytes: int) -> None:
        if self.count > MAX_UNPACKED_BYTES and self.count > MAX_UNPACKED_RATIO * self._packed.count:
            raise DataError(
                f"{self._name}: unpacks to more than {MAX_UNPACKED_RATIO} times its size, as no graph does; "
                "if you trust it, unpack it first"
            )


class _ZstdRaw(io.RawIOBase):
    """Reads zstd frames; unlike zstandard's own reader it fails when the last frame is cut short."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = b""
        self._is_inside_frame = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while not self._ready:
            block = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
                self._is_inside_frame = False
            block = block or self._stream.read(1 << 18)
            if not block:
                if self._is_inside_frame:
                    raise EOFError("the last zstd frame is cut short")
                return 0
            self._is_inside_frame = True
            self._ready = self._frame.decompress(block)
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


@contextmanager
def open_input(path: Path | None, progress: Progress) -> Iterator[Input]:
    """The file unpacked and ready to read; `None` is standard input. Read errors become `DataError`."""
    name = "standard input" if path is None else str(path)
    with reading_errors(name):
        with sys.stdin.buffer if path is None else path.open("rb") as file:
            counted = _CountingRaw(cast(BinaryIO, file), progress)
            raw = io.BufferedReader(counted, 1 << 20)
            start = raw.peek(64)[:64]
            stream: io.BufferedReader[Any] = raw
            if start.startswith(GZIP_MAGIC):
                unpacked = gzip.GzipFile(fileobj=raw)
                stream = io.BufferedReader(_GuardedRaw(cast(BinaryIO, unpacked), counted, name), 1 << 20)
            elif start.startswith(ZSTD_MAGIC):
                frames = io.BufferedReader(_ZstdRaw(cast(BinaryIO, raw)), 1 << 20)
                stream = io.BufferedReader(_GuardedRaw(cast(BinaryIO, frames), counted, name), 1 << 20)
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


def line_chunks(
    opened: Input, encoding: str = "utf-8", max_line: int | None = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, UTF-8 bytes of whole lines), in order; checked for NUL bytes and encoding.

    A byte-order mark is dropped, UTF-16 with such a mark is recoded, and CR alone counts as a line end.
    """
    stream: io.BufferedIOBase = opened.stream
    if opened.start.startswith(UTF16_BOMS):
        encoding = "utf-16"
    recode = encoding.lower().replace("_", "-") not in ("utf-8", "utf8")
    if recode:
        stream = _recoded(opened, encoding)
    line, rest, is_first, only_cr = 1, b"", True, False
    while True:
        block = stream.read(CHUNK_BYTES)
        if is_first:
            block = block.removeprefix(UTF8_BOM)
            only_cr = b"\r" in block and b"\n" not in block
            is_first = False
        if only_cr:
            block = block.replace(b"\r", b"\n")
        if not block:
            break
        cut = block.rfind(b"\n") + 1
        if cut == 0:
            rest += block
            if max_line is not None and len(rest) > max_line:
                raise DataError(_too_long(opened, line))
            continue
        chunk, rest = rest + block[:cut], block[cut:]
        check_text(opened, line, chunk)
        yield line, chunk
        line += chunk.count(b"\n")
    if rest:
        check_text(opened, line, rest)
        yield line, rest + b"\n"


def check_text(opened: Input, line: int, chunk: bytes) -> None:
    """Fails at the first NUL byte or the first byte that is not UTF-8, naming line and column."""
    if b"\0" in chunk:
        line, column = _position(chunk, chunk.index(b"\0"), line)
        raise DataError(f"{opened.name} line {line} column {column}: a NUL byte; this is not a text file of triples")
    try:
        chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _position(chunk, error.start, line)
        raise DataError(
            f"{opened.name} line {line} column {column}: byte 0x{chunk[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8 or name its encoding (encoding latin-1, for example)"
        ) from error


def _position(chunk: bytes, offset: int, line: int) -> tuple[int, int]:
    start = chunk.rfind(b"\n", 0, offset) + 1
    return line + chunk.count(b"\n", 0, offset), len(chunk[start:offset].decode("utf-8", "replace")) + 1


def _too_long(opened: Input, line: int) -> str:
    return (
        f"{opened.name} line {line}: longer than {MAX_LINE_BYTES >> 20} MB without a line end; "
        "this is not a table with one triple a line"
    )


def _recoded(opened: Input, encoding: str) -> io.BufferedIOBase:
    try:
        text = io.TextIOWrapper(cast(BinaryIO, opened.stream), encoding=encoding, newline="")
    except LookupError as error:
        raise DataError(f"no encoding is named {encoding!r}; try utf-8, latin-1, cp1252 or utf-16") from error
    return io.BufferedReader(_RecodedRaw(text, opened.name, encoding), 1 << 20)


class _RecodedRaw(io.RawIOBase):
    """Text in any encoding, handed on as UTF-8."""

    def __init__(self, text: io.TextIOWrapper, name: str, encoding: str) -> None:
        self._text = text
        self._name = name
        self._encoding = encoding
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        if not self._ready:
            try:
                self._ready = self._text.read(1 << 18).encode("utf-8", "surrogatepass")
            except UnicodeError as error:
                raise DataError(f"{self._name}: the content is not {self._encoding} ({error})") from error
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
