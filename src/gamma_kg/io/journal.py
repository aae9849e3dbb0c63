"""What a long run has found so far, on disk, so that it can be stopped and taken up again.

One JSON object a line, with a checksum before it that goes over all lines so far. The first holds the fingerprint of
graph, weights and options; each further one a block of queries that is done and the facts it gave. From a line on that
was cut off by a crash, damaged or lost since, everything is done again.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path
from typing import IO, Any

from gamma_kg.errors import DataError
from gamma_kg.io.atomic import cannot_write, write_text
from gamma_kg.io.lock import FileLock, beside


class Journal:
    """Appends blocks to a file; `blocks` holds those of an earlier run with the same fingerprint."""

    def __init__(self, path: Path | None, fingerprint: dict[str, Any]) -> None:
        self.path = path
        self.blocks: list[dict[str, Any]] = []
        self._file: IO[str] | None = None
        self._checksum = 0
        self._lock: FileLock | None = None
        if path is None:
            return
        # Two runs on one journal would write over each other's work.
        self._lock = FileLock(beside(path), f"the run recorded in {path}").acquire()
        try:
            if path.exists():
                self._take_up(path, fingerprint)
            else:
                self._rewrite(path, fingerprint)
            self._file = path.open("a", encoding="utf-8")
        except BaseException:
            self._lock.release()
            raise

    def add(self, block: dict[str, Any]) -> None:
        """Writes a finished block through to the disk."""
        if self._file is not None and self.path is not None:
            try:
                self._file.write(self._line(block))
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise cannot_write(self.path, error) from error

    def close(self) -> None:
        """Ends writing; the file stays."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk: `add` has said so, and the cut-off line is dropped later
                self._file.close()
        if self._lock is not None:
            self._lock.release()

    def remove(self) -> None:
        """Ends writing and deletes the file: the run is complete."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.close()

    def _take_up(self, path: Path, fingerprint: dict[str, Any]) -> None:
        found = read_records(path)
        if not found:
            raise DataError(f"{path}: not the record of an earlier run; delete it to start anew")
        for name, value in fingerprint.items():
            if found[0].get(name) != value:
                raise DataError(
                    f"{path}: an earlier run with another {name} was stopped here; "
                    "repeat its options to go on, or delete the file to start anew"
                )
        self.blocks = found[1:]
        self._rewrite(path, fingerprint)

    def _rewrite(self, path: Path, fingerprint: dict[str, Any]) -> None:
        write_text(path, "".join(self._line(record) for record in (fingerprint, *self.blocks)))

    def _line(self, record: dict[str, Any]) -> str:
        text = json.dumps(record)
        self._checksum = zlib.crc32(text.encode(), self._checksum)
        return f"{self._checksum:08x} {text}\n"


def read_records(path: Path) -> list[dict[str, Any]]:
    """The fingerprint and the blocks of a journal, as far as its checksums hold."""
    found: list[dict[str, Any]] = []
    checksum = 0
    for line in path.read_bytes().split(b"\n"):
        told, _, text = line.partition(b" ")
        checksum = zlib.crc32(text, checksum)
        if told != b"%08x" % checksum:
            break
        found.append(json.loads(text))
    return found
