"""The files of a store: its header, its arrays, and how both are written and checked."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.io.atomic import cannot_write, write_text
from gamma_kg.io.sealed import parsed, seal, unsealed

FORMAT = "gamma graph"
VERSION = 1
HEADER = "header.json"
BUILDING = "building"
PROGRESS = "progress.json"  # in there: what is done so far
LOCK = ".lock"
ENDING = ".gamma"
READ_BYTES = 1 << 24

AnyArray = NDArray[Any]


@dataclass(frozen=True)
class ArrayFacts:
    """What the header says of an array."""

    dtype: str
    count: int
    sha256: str

    @property
    def num_bytes(self) -> int:
        return self.count * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Header:
    """What a store is. `names` holds, per kind of name, what else is known of it (see `names.py`)."""

    generation: str
    num_entities: int
    num_relations: int
    num_triples: int
    names: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, ArrayFacts] = field(default_factory=dict)
    axioms: list[list[str]] = field(default_factory=list)  # what an ontology says (`ReadReport.axioms`)

    def write(self, store: Path) -> None:
        """Puts this header in the place of the one that is there: from now on the store is this generation."""
        told = {"format": FORMAT, "version": VERSION, **asdict(self)}
        text = json.dumps(seal(told), indent=1, ensure_ascii=False)
        write_text(store / HEADER, text + "\n", sync=True)

    @classmethod
    def read(cls, store: Path) -> Header:
        """The header of a store; one of another version, a damaged or an unfinished one is a `DataError`."""
        path = store / HEADER
        try:
            told = parsed(path.read_bytes())
        except FileNotFoundError:
            raise DataError(_no_header(store)) from None
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: can't be read ({error}); index the graph again") from None
        if not isinstance(told, dict) or told.get("format") != FORMAT:
            raise DataError(f"{path}: not the header of a graph; a store is made by `gamma index`")
        if told.get("version") != VERSION:
            raise DataError(
                f"{store}: a store of version {told.get('version')}, this program reads version {VERSION}; "
                "index the graph again"
            )
        try:
            told = unsealed(told)
        except ValueError as error:
            raise DataError(f"{path}: {error}; index the graph again") from None
        arrays = {name: ArrayFacts(**facts) for name, facts in told["arrays"].items()}
        fields = {name: told[name] for name in ("generation", "num_entities", "num_relations", "num_triples", "names")}
        return cls(**fields, arrays=arrays, axioms=told.get("axioms", []))


def is_store(path: str | Path) -> bool:
    """Whether a path means a store: by what lies there, or by its name."""
    path = Path(path)
    return (path / HEADER).is_file() or (path.suffix == ENDING and (path.is_dir() or not path.exists()))


def _no_header(store: Path) -> str:
    if not store.exists():
        return f"no such store: {store}"
    if (store / BUILDING).is_dir():
        return f"{store}: indexing was not finished; run the same `gamma index` command again to go on"
    return f"{store}: not a store (no {HEADER} in it); make one with `gamma index FILE --out {store}`"


class ArrayWriter:
    """An array written from beginning to end; its hash is taken on the way."""

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        self.name, self._dtype = name, np.dtype(dtype).newbyteorder("<")
        self.path = folder / f"{name}.bin"
        self.count = 0
        self._hash = hashlib.sha256()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Unbuffered: an error of the disk shows at the write it belongs to.
            self._file: BinaryIO = self.path.open("wb", buffering=0)
        except OSError as found:
            raise cannot_write(self.path, found) from found

    def append(self, values: AnyArray) -> None:
        block = np.ascontiguousarray(values, dtype=self._dtype).view(np.uint8).data
        self._hash.update(block)
        try:
            while len(block):
                block = block[self._file.write(block) :]
        except OSError as found:
            raise cannot_write(self.path, found) from found
        self.count += len(values)

    def close(self) -> ArrayFacts:
        """The array is on the disk once this returns."""
        try:
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as found:
            raise cannot_write(self.path, found) from found
        return ArrayFacts(self._dtype.str, self.count, self._hash.hexdigest())

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


class ArrayFolder:
    """Writes the arrays of a generation and keeps what the header will say of them."""

    def __init__(self, path: Path, arrays: dict[str, ArrayFacts] | None = None) -> None:
        self.path, self.arrays = path, dict(arrays or {})

    def write(self, name: str, values: AnyArray, dtype: Any = None) -> None:
        with self.writer(name, values.dtype if dtype is None else dtype) as array:
            array.append(values)
            self.add(array)

    def has(self, names: Iterable[str]) -> bool:
        """Whether the files of all these arrays are there."""
        return all((self.path / f"{name}.bin").is_file() for name in names)

    def writer(self, name: str, dtype: Any) -> ArrayWriter:
        return ArrayWriter(self.path, name, dtype)

    def add(self, array: ArrayWriter) -> None:
        """Ends an array and notes it."""
        self.arrays[array.name] = array.close()

    def map(self, name: str) -> AnyArray:
        if name not in self.arrays:
            raise DataError(f"{self.path}: an array is missing ({name}); index the graph again")
        return map_array(self.path / f"{name}.bin", self.arrays[name])


def map_array(path: Path, facts: ArrayFacts) -> AnyArray:
    """An array of a store, read-only; what is not looked at is not read. Its size is checked, its content is not."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: missing ({error.strerror}); index the graph again") from None
    if size != facts.num_bytes:
        raise DataError(f"{path}: {size:,} bytes where {facts.num_bytes:,} were written; index the graph again")
    if facts.count == 0:
        return np.empty(0, dtype=facts.dtype)
    # A plain array over the mapping: the subclass numpy returns is several times slower to index.
    return np.asarray(np.memmap(path, dtype=facts.dtype, mode="r"))


def check_arrays(store: Path, header: Header) -> None:
    """Reads every array and compares its hash with the header's."""
    for name, facts in header.arrays.items():
        path = store / header.generation / f"{name}.bin"
        map_array(path, facts)
        found = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(READ_BYTES):
                found.update(block)
        if found.hexdigest() != facts.sha256:
            raise DataError(f"{path}: changed since it was written; index the graph again")
