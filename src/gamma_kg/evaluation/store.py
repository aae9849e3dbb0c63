"""Results on disk: one JSON file per graph, its ranks beside it, and what an interrupted graph had done so far.

Every file carries the key of what it belongs to (model, data, options), so results are never mixed.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import time
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.evaluation.ranking import RivalCounts
from gamma_kg.io.atomic import write_text, write_whole
from gamma_kg.io.lock import beside, locked
from gamma_kg.io.sealed import read_object, seal

FORMAT = "gamma-kg/result/1"
# An unfinished graph is saved as often as that costs no more than this share of the time: a kill loses next to nothing.
SAVING_SHARE = 0.03
COUNTS = ("above", "tied", "total")  # the arrays of `RivalCounts`
NUMBER = (int, float, NoneType)
# What whoever reads a result relies on.
NEEDED: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("dataset", "group", "split", "task", "key", "leakage", "model.name", "model.hash"), str),
    **dict.fromkeys(("mrr", "hits@1", "hits@3", "hits@10", "mr", "amri", "fair.mrr", "fair.hits@10"), NUMBER),
    **dict.fromkeys(("queries", "seconds"), NUMBER),
    **{"limit": (dict, NoneType), "by": dict},
}


def result_key(**parts: Any) -> str:
    """sha256 over everything that decides a result."""
    return hashlib.sha256(json.dumps({"format": FORMAT, **parts}, sort_keys=True).encode()).hexdigest()


class ResultStore:
    """The folder of one evaluation run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, label: str, split: str) -> Path:
        return self.folder / (f"{label}.json" if split == "test" else f"{label}.{split}.json")

    def finished(self, label: str, split: str, key: str) -> tuple[dict[str, Any], RivalCounts] | None:
        """The result with this key, if it is there; a result with another key is refused, not overwritten."""
        path = self.path(label, split)
        if not path.is_file():
            return None
        result = read_result(path)
        if result.get("key") != key:
            raise DataError(
                f"{path} holds the result of another model, other data or other options "
                f"({_describe(result)}); choose another --out folder, or --fresh to replace it"
            )
        ranks = self._ranks_path(path)
        if not ranks.is_file():
            return None
        arrays = read_arrays(ranks, "key")
        if arrays is None or str(arrays["key"]) != key:
            return None  # ranked anew
        return result, counts_of(arrays)

    def save(self, label: str, result: Mapping[str, Any], counts: RivalCounts) -> None:
        """Ranks first, then the JSON file: where that is, the graph is done."""
        path = self.path(label, result["split"])
        _write_arrays(self._ranks_path(path), result["key"], counts)
        write_text(path, json.dumps(seal(plain(result)), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def alone(self, label: str, split: str) -> AbstractContextManager[None]:
        """While inside, no other run ranks this graph into this folder: both would write the same files."""
        path = self.path(label, split)
        return locked(beside(path), f"the result {path}")

    def discard(self, label: str, split: str) -> None:
        self.path(label, split).unlink(missing_ok=True)
        for path in self._partials(label, split):
            path.unlink(missing_ok=True)

    def partial(self, label: str, split: str, key: str, size: int, process: int) -> Partial:
        """What earlier runs of this graph, by any number of processes, have ranked; ready to be continued."""
        counts, seconds = RivalCounts.empty(size), 0.0
        for path in self._partials(label, split):
            arrays = read_arrays(path, "key", "seconds")
            if arrays is not None and str(arrays["key"]) == key and len(arrays["above"]) == size:
                counts.take_over([counts_of(arrays)])
                seconds = max(seconds, float(arrays["seconds"]))
        own = self.folder / "ranks" / f"{self.path(label, split).stem}.part{process}.npz"
        return Partial(own, key, counts, seconds)

    def drop_partials(self, label: str, split: str) -> None:
        for path in self._partials(label, split):
            path.unlink(missing_ok=True)

    def _ranks_path(self, path: Path) -> Path:
        return self.folder / "ranks" / f"{path.stem}.npz"

    def _partials(self, label: str, split: str) -> list[Path]:
        return sorted((self.folder / "ranks").glob(f"{glob.escape(self.path(label, split).stem)}.part*.npz"))


class Partial:
    """Ranks of an unfinished graph. `seconds` is the time that earlier runs have spent on it."""

    def __init__(self, path: Path, key: str, counts: RivalCounts, seconds: float) -> None:
        self.path, self.key, self.counts, self.seconds = path, key, counts, seconds
        self._started = self._saved = time.monotonic()
        self._cost = 0.03

    @property
    def elapsed(self) -> float:
        return self.seconds + time.monotonic() - self._started

    def save_now_and_then(self) -> None:
        if SAVING_SHARE * (time.monotonic() - self._saved) >= self._cost:
            self.save()

    def save(self) -> None:
        before = time.monotonic()
        _write_arrays(self.path, self.key, self.counts, seconds=np.float64(self.elapsed))
        self._saved = time.monotonic()
        self._cost = self._saved - before


def plain(value: Any) -> Any:
    """For JSON, which has no NaN: a mean over nothing becomes null."""
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_result(path: Path) -> dict[str, Any]:
    """A result file; anything else, or one that was changed, is a `DataError`. Earlier versions wrote no checksum."""
    result = read_object(path, "a result of `gamma evaluate`")
    if result.get("format") != FORMAT:
        raise DataError(f"{path} is no result of `gamma evaluate` (format {FORMAT!r} expected)")
    missing = [name for name, kind in NEEDED.items() if not _is(_inside(result, name), kind)]
    missing += [f"by.{name}" for name, strata in result["by"].items() if not _are_strata(strata)] if not missing else []
    if missing:
        listed = ", ".join(missing)
        raise DataError(f"{path} is no whole result of `gamma evaluate`: {listed} missing or of another kind")
    return result


def _are_strata(strata: Any) -> bool:
    entries = list(strata.values()) if isinstance(strata, dict) else [None]
    # A stratum without any query has no MRR.
    return all(_is(_inside(entry, name), NUMBER) for entry in entries for name in ("queries", "mrr"))


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Of this kind; a number is finite."""
    return isinstance(value, kind) and not (isinstance(value, float) and not math.isfinite(value))


def _inside(record: Any, name: str) -> Any:
    """What a dotted name means; an Ellipsis where there is nothing of that name."""
    found: Any = record
    for part in name.split("."):
        found = found.get(part, ...) if isinstance(found, Mapping) else ...
    return found


# What np.load says of a file that it can't read: of another kind, cut short, changed, or claiming to be huge.
DAMAGE = (
    *(OSError, ValueError, TypeError, KeyError, EOFError, MemoryError),
    *(NotImplementedError, zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)


def read_arrays(path: Path, *more: str) -> dict[str, NDArray[Any]] | None:
    """What `_write_arrays` wrote; None where that is damaged. Arrays of objects, which could run code, are refused."""
    try:
        with path.open("rb") as stream, np.load(stream) as arrays:  # np.load would leave a damaged file open
            found = {name: arrays[name] for name in (*COUNTS, *more)}
    except DAMAGE:
        return None
    sizes = {len(found[name]) if found[name].ndim == 1 else -1 for name in COUNTS}
    return found if len(sizes) == 1 and -1 not in sizes else None


def counts_of(arrays: Mapping[str, NDArray[Any]]) -> RivalCounts:
    return RivalCounts(*(arrays[name] for name in COUNTS))


def _write_arrays(path: Path, key: str, counts: RivalCounts, **more: NDArray[Any] | np.float64) -> None:
    arrays: dict[str, Any] = {**dict(zip(COUNTS, counts.parts, strict=True)), **more}

    def save(file: Path) -> None:
        with file.open("wb") as stream:
            np.savez(stream, key=np.str_(key), **arrays)

    write_whole(path, save)


def _describe(result: Mapping[str, Any]) -> str:
    options = f", limit {result['limit']}" if result.get("limit") else ""
    return f"model {result['model']['name']} {result['model']['hash'][:12]}, task {result['task']}{options}"
