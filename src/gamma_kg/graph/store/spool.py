"""Named triples on their way to ids, on disk: chunks with small numbers of their own, and the names these stand for.

A chunk numbers its names by itself, so reading never asks what was read before, and memory is that of one chunk:

chunk-7.entity.parquet    name, local number, and where the name first appeared (counted over everything read)
chunk-7.relation.parquet  the same for relations
chunk-7.triples.bin       int32 [n, 3] in local numbers
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.errors import DataError, GammaError
from gamma_kg.io.atomic import cannot_write
from gamma_kg.machine.fork import need_polars

CHUNK_ROWS = 2_000_000
KINDS = ("entity", "relation")


class Spool(TripleEncoder):
    """Takes what readers give an encoder, and writes it to a folder chunk by chunk."""

    def __init__(self, folder: Path, *, first_chunk: int = 0, position: int = 0, num_triples: int = 0) -> None:
        super().__init__()
        self.folder, self.num_chunks, self.position, self.num_triples = folder, first_chunk, position, num_triples
        self._waiting: list[tuple[pl.Series, pl.Series, pl.Series]] = []
        self._num_waiting = 0
        self._first_own = first_chunk  # chunks before it belong to a store that is added to, or to an earlier run

    def add(self, heads: pl.Series, relations: pl.Series, tails: pl.Series) -> None:
        if len(heads):
            self._waiting.append((heads, relations, tails))
            self._num_waiting += len(heads)
            self.num_triples += len(heads)
        if self._num_waiting >= CHUNK_ROWS:
            self.flush()

    def add_rows(self, rows: Sequence[tuple[str, str, str]]) -> None:
        if rows:
            frame = pl.DataFrame(rows, schema=["h", "r", "t"], orient="row")
            self.add(frame["h"], frame["r"], frame["t"])

    def flush(self) -> None:
        """Writes what waits as one chunk."""
        if not self._waiting:
            return
        need_polars(str(self.folder), sum(int(part.estimated_size()) for column in self._waiting for part in column))
        heads, relations, tails = (
            pl.concat([part.rename("name") for part in column]) for column in zip(*self._waiting, strict=True)
        )
        self._waiting, self._num_waiting = [], 0
        num = len(heads)
        # Head and tail in turns, so that "first appearance" runs along the lines.
        ends = pl.concat([heads, tails]).gather(np.arange(2 * num).reshape(2, num).T.ravel())
        triples = np.empty((num, 3), dtype=np.int32)
        triples[:, [0, 2]] = self._numbered(ends, "entity").reshape(num, 2)
        triples[:, 1] = self._numbered(relations, "relation")
        self._write_triples([triples])
        self.position += 2 * num
        self.num_chunks += 1

    def add_known(self, names: Mapping[str, Iterable[list[str]]], triples: Iterable[NDArray[np.integer]]) -> None:
        """A chunk whose local numbers are ids already: a store that is added to keeps its ids, all at the front."""
        self.flush()
        most = 0
        for kind in KINDS:
            start = 0
            for part, batch in enumerate(names[kind]):
                local = np.arange(start, start + len(batch))
                self._write_names(pl.Series("name", batch, dtype=pl.String), local, local, kind, part)
                start += len(batch)
            most = max(most, start)
        self.num_triples += self._write_triples(triples)
        self.position += most
        self.num_chunks += 1
        self._first_own = self.num_chunks

    def entity_names(self) -> Iterator[str]:
        """As for any encoder; of a store that is added to, none."""
        self.flush()
        for number in range(self._first_own, self.num_chunks):
            yield from self._names(number, "entity")["name"]

    def pairs(self, relation: str) -> list[tuple[str, str]]:
        """As for any encoder, chunk by chunk; of a store that is added to, none."""
        self.flush()
        found: list[tuple[str, str]] = []
        for number in range(self._first_own, self.num_chunks):
            is_asked = (self._names(number, "relation")["name"] == relation).to_numpy()
            if is_asked.any():
                triples = np.fromfile(self.folder / f"chunk-{number}.triples.bin", dtype="<i4").reshape(-1, 3)
                ends, names = triples[is_asked[triples[:, 1]]], self._names(number, "entity")["name"]
                found.extend(zip(names.gather(ends[:, 0]), names.gather(ends[:, 2]), strict=True))
        return found

    def drop(self, things: Collection[str], properties: Collection[str]) -> None:
        """As for any encoder, chunk by chunk; what came from a store stays as it is."""
        self.flush()
        for number in range(self._first_own, self.num_chunks):
            files = {kind: self._names_file(number, kind) for kind in KINDS}
            names = {kind: self._names(number, kind) for kind in KINDS}
            path = self.folder / f"chunk-{number}.triples.bin"
            triples = np.fromfile(path, dtype="<i4").reshape(-1, 3)
            is_gone = names["entity"]["name"].is_in(list(things)).to_numpy()
            is_unwanted = names["relation"]["name"].is_in(list(properties)).to_numpy()
            kept = triples[~(is_gone[triples[:, [0, 2]]].any(axis=1) | is_unwanted[triples[:, 1]])]
            if len(kept) == len(triples):
                continue
            for kind, columns in zip(KINDS, ([0, 2], [1]), strict=True):
                used, renumbered = np.unique(kept[:, columns], return_inverse=True)
                kept[:, columns] = renumbered.reshape(-1, len(columns))
                left = names[kind][used].with_columns(local=pl.arange(len(used), dtype=pl.Int32))
                with disk_errors(files[kind]):
                    left.write_parquet(files[kind], compression="lz4", statistics=False)
            with disk_errors(path):
                path.write_bytes(int32_bytes(kept))
            self.num_triples -= len(triples) - len(kept)

    def _names_file(self, number: int, kind: str) -> Path:
        return self.folder / f"chunk-{number}.{kind}.0.parquet"

    def _names(self, number: int, kind: str) -> pl.DataFrame:
        """The names of one chunk of its own, by local number."""
        return pl.read_parquet(self._names_file(number, kind))

    def _numbered(self, names: pl.Series, kind: str) -> NDArray[np.int32]:
        is_first = names.is_first_distinct()
        distinct = names.filter(is_first)
        self._write_names(distinct, np.arange(len(distinct)), is_first.arg_true().to_numpy(), kind, 0)
        table = pl.DataFrame({"name": distinct, "id": np.arange(len(distinct), dtype=np.int32)})
        return names.to_frame().join(table, on="name", how="left", maintain_order="left")["id"].to_numpy()

    def _write_names(
        self, names: pl.Series, local: NDArray[np.integer], first: NDArray[np.integer], kind: str, part: int
    ) -> None:
        frame = pl.DataFrame(
            {
                "name": names,
                "chunk": np.full(len(names), self.num_chunks, dtype=np.int32),
                "local": local.astype(np.int32),
                "seen": first.astype(np.int64) + self.position,
            }
        )
        path = self.folder / f"chunk-{self.num_chunks}.{kind}.{part}.parquet"
        with disk_errors(path):
            frame.write_parquet(path, compression="lz4", statistics=False)

    def _write_triples(self, blocks: Iterable[NDArray[np.integer]]) -> int:
        path = self.folder / f"chunk-{self.num_chunks}.triples.bin"
        count = 0
        with disk_errors(path), path.open("wb") as file:
            for block in blocks:
                file.write(int32_bytes(block))
                count += len(block)
        return count


def int32_bytes(triples: NDArray[np.integer]) -> memoryview:
    """For a file; numpy's own way to write tells of a full disk in words that say nothing of it."""
    return np.ascontiguousarray(triples, dtype="<i4").ravel().view(np.uint8).data


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """What polars, numpy or the system say of a disk that does not take a file becomes one `DataError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise cannot_write(path, error) from error
    except pl.exceptions.PolarsError as error:
        raise disk_error(path, error, f"can't write {path}") from error


def disk_error(path: Path, error: Exception, failed: str) -> GammaError:
    """What became of a library's own error at a file: a full disk is told by each in other words, by one as damage."""
    if os.strerror(errno.ENOSPC) in str(error):
        return cannot_write(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    return DataError(f"{failed}: {str(error).strip().splitlines()[0]}")
