"""The text of an opened file as UTF-8, in chunks of whole lines.

What is no text (a NUL byte, another encoding, a line without end) is a `DataError` that names the line and column.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from gamma_kg.data.streams import Input
from gamma_kg.errors import DataError

CHUNK_BYTES = 1 << 25
# A line longer than this is no triple; without a bound, a binary file without newlines would fill the memory.
MAX_LINE_BYTES = 1 << 24

UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
UTF8_BOM = b"\xef\xbb\xbf"


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


def numbered_lines(chunk: tuple[int, bytes]) -> Iterator[tuple[int, str]]:
    """The lines of such a chunk, each with its number and without its end."""
    number, block = chunk
    for i, line in enumerate(io.BytesIO(block)):
        yield number + i, line.decode("utf-8").rstrip("\r\n")


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
