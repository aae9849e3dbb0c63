"""Bytes of a file on their way: counted, unpacked, and stopped where they grow out of all proportion."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO

import zstandard

from gamma_kg.errors import DataError

# Graphs pack to a tenth or a fiftieth; what unpacks to more than this many times its size is made to do harm.
MAX_UNPACKED_RATIO = 300
MAX_UNPACKED_BYTES = 1 << 27

Progress = Callable[[int], None]


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


class CountingRaw(_PassingRaw):
    """Tells `progress` how many bytes of the file have been read."""

    def __init__(self, stream: BinaryIO, progress: Progress) -> None:
        super().__init__(stream)
        self._progress = progress

    def passed(self, num_bytes: int) -> None:
        self._progress(num_bytes)


class GuardedRaw(_PassingRaw):
    """Passes unpacked bytes on until they are out of proportion: a few kilobytes can unpack to more than any disk."""

    def __init__(self, stream: BinaryIO, packed: CountingRaw, name: str) -> None:
        super().__init__(stream)
        self._packed = packed
        self._name = name

    def passed(self, num_bytes: int) -> None:
        if self.count > MAX_UNPACKED_BYTES and self.count > MAX_UNPACKED_RATIO * self._packed.count:
            raise DataError(
                f"{self._name}: unpacks to more than {MAX_UNPACKED_RATIO} times its size, as no graph does; "
                "if you trust it, unpack it first"
            )


class ZstdRaw(io.RawIOBase):
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
