"""Many strings on disk: their bytes one after the other, where each begins, and which of them is a given one.

The index is a table of buckets by hash: the strings of bucket b are item[ptr[b] : ptr[b + 1]], about one each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.graph.store.layout import AnyArray, ArrayFolder
from gamma_kg.graph.store.scan import holding

BATCH_STRINGS = 1 << 18
BASE = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xFF51AFD7ED558CCD)


def damaged(found: object) -> DataError:
    """Names that are no text, or places where there is none: files that changed since they were written."""
    return DataError(f"the names of the store are damaged ({found}); `gamma index STORE --verify` says where")


class StringTable:
    """Strings by position, read when asked for."""

    def __init__(self, offset: AnyArray, content: AnyArray) -> None:
        self._offset, self._content = offset, content

    def __len__(self) -> int:
        return max(len(self._offset) - 1, 0)

    def __getitem__(self, index: int) -> str:
        try:
            return self._content[self._offset[index] : self._offset[index + 1]].tobytes().decode()
        except (IndexError, UnicodeDecodeError) as error:
            raise damaged(error) from None

    def slice(self, start: int, stop: int) -> list[str]:
        offset = self._offset[start : stop + 1] if stop > start else self._offset[:1]
        content = self._content[int(offset[0]) : int(offset[-1])].tobytes()
        ends = (offset - offset[0]).tolist()
        try:
            return [content[a:b].decode() for a, b in pairwise(ends)]
        except UnicodeDecodeError as error:
            raise damaged(error) from None

    def batches(self, size: int = BATCH_STRINGS) -> Iterator[list[str]]:
        return (self.slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def holding(self, part: str, limit: int) -> list[int]:
        """Positions of the first strings that hold this part."""
        return holding(self._offset, self._content, part, limit)

    def hashes(self, size: int = BATCH_STRINGS) -> Iterator[NDArray[np.uint64]]:
        """The hash of every string, in batches."""
        for start in range(0, len(self), size):
            offset = self._offset[start : min(start + size, len(self)) + 1]
            yield hashes_of(self._content[int(offset[0]) : int(offset[-1])], offset - offset[0])


def write_strings(folder: ArrayFolder, name: str, batches: Iterable[Sequence[str]]) -> StringTable:
    """Writes strings under NAME.offset and NAME.bytes."""
    with folder.writer(f"{name}.offset", np.int64) as offset, folder.writer(f"{name}.bytes", np.uint8) as content:
        offset.append(np.zeros(1, dtype=np.int64))
        for batch in batches:
            encoded = [string.encode() for string in batch]
            lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
            offset.append(content.count + lengths.cumsum())
            content.append(np.frombuffer(b"".join(encoded), dtype=np.uint8))
        folder.add(offset)
        folder.add(content)
    return map_strings(folder, name)


def map_strings(folder: ArrayFolder, name: str) -> StringTable:
    return StringTable(folder.map(f"{name}.offset"), folder.map(f"{name}.bytes"))


class StringIndex:
    """Positions of a string in a table."""

    def __init__(self, ptr: AnyArray, item: AnyArray, table: StringTable) -> None:
        self._ptr, self._item, self._table = ptr, item, table

    def find(self, string: str) -> list[int]:
        """All positions, ascending; usually one or none."""
        content = np.frombuffer(string.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        if not len(content) or not len(self._item):
            return []
        bucket = int(buckets_of(hashes_of(content, np.array([0, len(content)])), len(self._ptr) - 1)[0])
        found = self._item[int(self._ptr[bucket]) : int(self._ptr[bucket + 1])].tolist()
        return [at for at in found if self._table[at] == string]


def write_index(folder: ArrayFolder, name: str, table: StringTable) -> None:
    """Writes the index of a table under NAME.bucket_ptr and NAME.bucket_item."""
    num_buckets = 1 << max(len(table) - 1, 1).bit_length()
    parts = [buckets_of(part, num_buckets).astype(np.uint32) for part in table.hashes()]
    bucket = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)
    del parts
    ptr = np.zeros(num_buckets + 1, dtype=np.int64)
    np.cumsum(np.bincount(bucket, minlength=num_buckets), out=ptr[1:])
    folder.write(f"{name}.bucket_ptr", ptr)
    folder.write(f"{name}.bucket_item", np.argsort(bucket, kind="stable").astype(np.int32))


def map_index(folder: ArrayFolder, name: str, table: StringTable) -> StringIndex:
    return StringIndex(folder.map(f"{name}.bucket_ptr"), folder.map(f"{name}.bucket_item"), table)


def hashes_of(content: AnyArray, offset: AnyArray) -> NDArray[np.uint64]:
    """A 64-bit hash of each string: its bytes as digits of a number to a large odd base, then mixed.

    It is written out here because it is part of the file format: hashes of libraries change with their versions.
    """
    lengths = np.diff(offset)
    result = np.zeros(len(lengths), dtype=np.uint64)
    is_any = lengths > 0
    if is_any.any():
        start = offset[:-1][is_any].astype(np.int64)
        place = np.arange(len(content)) - np.repeat(start, lengths[is_any])
        with np.errstate(over="ignore"):
            power = np.cumprod(np.full(int(lengths.max()), BASE, dtype=np.uint64))
            result[is_any] = np.add.reduceat((content.astype(np.uint64) + np.uint64(1)) * power[place], start)
            result ^= result >> np.uint64(32)
            result *= MIX
            result ^= result >> np.uint64(29)
    return result


def buckets_of(hashes: NDArray[np.uint64], num_buckets: int) -> NDArray[np.uint64]:
    """Which bucket each hash belongs to; their number is a power of two."""
    return hashes & np.uint64(num_buckets - 1)
