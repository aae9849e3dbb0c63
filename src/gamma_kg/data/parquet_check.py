"""Whether the sizes that a Parquet file claims can be true, before polars believes them.

A few damaged bytes can claim a page of 10^18 values; polars then asks for the memory, and the whole process ends. The
footer and the head of every page are Thrift structs in the compact protocol; only their numbers are looked at here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import SEEK_END
from typing import Any, BinaryIO

from gamma_kg.errors import DataError

# What a byte of a graph's file may stand for at most, packed as well as it can be.
MAX_VALUES_PER_BYTE = 10_000
MAX_UNPACKED_PER_BYTE = 10_000
HEAD_BYTES = 1 << 14
MAX_DEPTH = 12
# What our own reading runs into when the bytes are not what they should be.
MISREAD = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error)


class _UnsoundError(Exception):
    pass


def check_parquet(name: str, file: BinaryIO) -> None:
    """Fails with a `DataError` if a count or a size in the file can't be right."""
    try:
        for count, limit in _claims(file):
            if not 0 <= count <= limit:
                raise _UnsoundError(f"it claims {count:,} where at most {limit:,} can be")
    except (_UnsoundError, *MISREAD) as error:
        reason = error if isinstance(error, _UnsoundError) else "its inside can't be decoded"
        raise DataError(f"{name}: not a sound Parquet file ({reason}); get the file again") from None


def _claims(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """(what is claimed, the most that can be) for the counts and sizes that polars takes memory for."""
    size = file.seek(0, SEEK_END)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    if size < 12 or tail[4:] != b"PAR1":
        raise _UnsoundError("its end is missing")
    (length,) = struct.unpack("<I", tail[:4])
    yield length, size - 12
    file.seek(size - 8 - length)
    footer = _Thrift(file.read(length)).struct()
    values_limit, bytes_limit = MAX_VALUES_PER_BYTE * size, MAX_UNPACKED_PER_BYTE * size
    yield footer[3], values_limit
    for group in footer[4]:
        yield group[3], values_limit
        for column in group[1]:
            facts = column[3]
            num_values, packed = facts[5], facts[7]
            yield num_values, values_limit
            yield packed, size
            yield facts[6], bytes_limit
            at = min(offset for offset in (facts[9], facts.get(11)) if offset)
            yield from _page_claims(file, at, at + packed, num_values, size, bytes_limit)


def _page_claims(
    file: BinaryIO, at: int, end: int, num_values: int, size: int, bytes_limit: int
) -> Iterator[tuple[int, int]]:
    yield at, size
    yield end, size
    while at < end:
        file.seek(at)
        reader = _Thrift(file.read(min(HEAD_BYTES, size - at)))
        try:
            head = reader.struct()
        except IndexError:  # statistics of long texts
            file.seek(at)
            reader = _Thrift(file.read(size - at))
            head = reader.struct()
        yield head[2], bytes_limit
        yield head[3], end - at
        for kind in (5, 7, 8):
            if kind in head:
                # A dictionary may hold more than the pages use.
                yield head[kind][1], num_values if kind != 7 else MAX_VALUES_PER_BYTE * size
        at += reader.at + head[3]


class _Thrift:
    """Reads Thrift's compact protocol into plain dicts by field id, lists, numbers and bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > MAX_DEPTH:
            raise _UnsoundError("its inside is nested too deeply")
        fields: dict[int, Any] = {}
        last = 0
        while byte := self._byte():
            last = last + (byte >> 4) if byte >> 4 else self._signed()
            kind = byte & 0x0F
            fields[last] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return self._byte() == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return struct.unpack("<d", self._bytes(8))[0]
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            if count > len(self._content):
                raise _UnsoundError(f"it claims a list of {count:,}")
            return [self._value(head & 0x0F, depth) for _ in range(count)]
        if kind == 11:
            count = self._varint()
            kinds = self._byte() if count else 0
            if count > len(self._content):
                raise _UnsoundError(f"it claims a map of {count:,}")
            return [(self._value(kinds >> 4, depth), self._value(kinds & 0x0F, depth)) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        raise _UnsoundError("its inside can't be decoded")

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        if self.at + count > len(self._content):
            raise IndexError
        self.at += count
        return self._content[self.at - count : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value
            if shift > 70:
                raise _UnsoundError("its inside can't be decoded")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
