"""A benchmark as numbers: per split the graph that is seen, the triples that are asked, the triples that are known.

Comes in: a name of the catalogue, or a folder with train/valid/test (or inference/test) files. Goes out: id arrays.
Each split numbers its own entities and relations, by first appearance: the graph first, then valid, then test,
head before tail within a line. Entities that only occur in query files are part of the split (isolated nodes).
Repeated lines stay, as the published evaluation keeps them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.catalog import Dataset, Protocol, cache_folder, catalog, data_folder, dataset
from gamma_kg.data.options import FORMATS
from gamma_kg.data.pykeen_sets import PREFIX, pykeen_folder
from gamma_kg.data.read import read_triples
from gamma_kg.data.vocabulary import Names, Vocabulary
from gamma_kg.errors import DataError, did_you_mean
from gamma_kg.io.sealed import parsed, read_object

SPLITS = ("train", "valid", "test")
# Hashes of what `gamma datasets fetch` wrote, beside the files.
RECORD = "sha256.json"
OWN_SUFFIXES = tuple(f".{name}{packed}" for name in FORMATS for packed in ("", ".gz"))
# The common layout needs no guessing, and names that look like a header or a number must stay what they are.
LAYOUT: dict[str, Any] = {"format": "tsv", "header": False, "progress": False}

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """One evaluation. Triples are int64 [n, 3] (head, relation, tail); `known` is what the filter removes."""

    graph: IntArray
    queries: IntArray
    known: IntArray
    entities: Names
    relations: Names

    @property
    def num_entities(self) -> int:
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        return len(self.relations)


@dataclass(frozen=True)
class Benchmark:
    """A set whose files are at hand. `files` maps train, inference, valid, test to paths, as far as present."""

    name: str
    group: str
    protocol: Protocol
    files: Mapping[str, Path]
    entry: Dataset | None = None
    is_common_layout: bool = True
    _hashes: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def split(self, name: str, *, published_filter: bool = False) -> Split:
        """The graph, queries and known triples of "valid" or "test"; "train" asks for the train triples themselves.

        Validation never reads a test triple, unless the filter of the published evaluation is asked for.
        """
        parts = self._parts(name, published_filter)
        graph_part, known_parts = self._roles(name, published_filter)
        triples, entities, relations = self._read(parts)
        known = np.concatenate([triples[part] for part in known_parts])
        return Split(triples[graph_part], triples[name], known, entities, relations)

    def data_hash(self, split: str, *, published_filter: bool = False) -> str:
        """One sha256 over the files that the split is made of."""
        lines = [f"{part} {self._hash(part)}" for part in self._parts(split, published_filter)]
        return hashlib.sha256("\n".join([self.protocol.name, *lines]).encode()).hexdigest()

    def all_triples(self) -> tuple[dict[str, IntArray], Vocabulary, Vocabulary]:
        """Every file that is present under one numbering: for statistics of the whole set."""
        parts = [part for part in ("train", "inference", "valid", "test") if part in self.files]
        return self._read(parts)

    def _read(self, parts: Sequence[str]) -> tuple[dict[str, IntArray], Vocabulary, Vocabulary]:
        return read_parts({part: self._path(part) for part in parts}, **(LAYOUT if self.is_common_layout else {}))

    def _roles(self, split: str, published_filter: bool = False) -> tuple[str, tuple[str, ...]]:
        if split == "train":
            return "train", ("train",)
        if split not in self.protocol.graph:
            raise DataError(f"no split is named {split!r}{did_you_mean(split, SPLITS)}; splits: {', '.join(SPLITS)}")
        known = self.protocol.filter[split]
        if published_filter:
            known = self.protocol.published_filter.get(split, known)
        # A set may come without valid.txt; its test split is still well defined.
        return self.protocol.graph[split], tuple(part for part in known if part == split or part in self.files)

    def _parts(self, split: str, published_filter: bool = False) -> list[str]:
        graph, known = self._roles(split, published_filter)
        wanted = {graph, split, *known}
        return [part for part in ("train", "inference", "valid", "test") if part in wanted]

    def _path(self, part: str) -> Path:
        if part not in self.files:
            raise DataError(f"{self.name} has no {part} file here; present: {', '.join(self.files) or 'none'}")
        return self.files[part]

    def _hash(self, part: str) -> str:
        if part not in self._hashes:
            self._hashes[part] = file_sha256(self._path(part))
        return self._hashes[part]


def load_benchmark(name: str, data_dir: str | Path | None = None, *, verify: bool = True) -> Benchmark:
    """The set called `name`, a PyKEEN set ("pykeen:Nations"), or the user's own folder of that path.

    A file that is not what it should be is refused.
    """
    if name.startswith(PREFIX):
        own = own_benchmark(pykeen_folder(name.removeprefix(PREFIX), cache_folder()))
        return replace(own, name=name.lower().replace(":", "-"), is_common_layout=True)
    as_path = Path(name).expanduser()
    if name.casefold() not in catalog() and as_path.is_dir():
        return own_benchmark(as_path)
    entry = dataset(name)
    folder = data_folder(data_dir)
    files = {Path(f).stem: folder / entry.slug / f for f in entry.files if (folder / entry.slug / f).is_file()}
    needed = [entry.protocol.graph["test"], "test"]
    missing = [f"{part}.txt" for part in needed if part not in files]
    if missing:
        raise DataError(
            f"{entry.slug} is not in {folder}: {', '.join(missing)} missing in {folder / entry.slug}. Run "
            f"`gamma datasets fetch {entry.slug}`, or put the files there (TAB between head, relation, tail), "
            "or point --data-dir or GAMMA_DATA to the folder that has them"
        )
    benchmark = Benchmark(entry.slug, entry.group, entry.protocol, files, entry)
    if verify:
        verify_files(benchmark, folder)
    return benchmark


def own_benchmark(folder: Path) -> Benchmark:
    """A folder with train/valid/test, or inference/test, as a benchmark named after the folder.

    An inductive folder validates on the graph that holds more of valid's triples, train or inference.
    """
    files = {part: path for part in ("train", "inference", "valid", "test") if (path := _own_file(folder, part))}
    protocols = {entry.protocol.name: entry.protocol for entry in catalog().values()}
    if "test" not in files or not {"train", "inference"} & files.keys():
        raise DataError(
            f"{folder} is not a benchmark folder: wanted train and test files (train.txt, valid.txt, test.txt) or "
            f"inference and test files, found {', '.join(p.name for p in files.values()) or 'none of them'}"
        )
    if "inference" not in files:
        protocol = protocols["transductive"]
    elif _validates_on_train(files):
        protocol = protocols["validates-on-train"]
    else:
        protocol = protocols["validates-on-inference"]
    return Benchmark(folder.resolve().name, "own", protocol, files, is_common_layout=False)


def verify_files(benchmark: Benchmark, folder: Path) -> None:
    """Refuse a file whose sha256 is not among those known for it; where none is known it is taken as it is."""
    entry = benchmark.entry
    if entry is None:
        return
    recorded = _recorded_hashes(entry.slug, folder)
    for part, path in benchmark.files.items():
        facts = entry.files[path.name]
        allowed = {sha for sha in (facts.sha256, recorded.get(path.name)) if sha}
        if not allowed:
            continue
        found = benchmark._hash(part)
        if found in allowed:
            continue
        lines = count_lines(path)
        if facts.lines_at_origin == lines and path.name not in recorded:
            continue
        raise DataError(
            f"{path} was changed or cut short: expected sha256 {' or '.join(sorted(allowed))} "
            f"({facts.lines} lines), found {found} ({lines} lines). Delete it and run "
            f"`gamma datasets fetch {entry.slug}`"
        )


def read_parts(paths: Mapping[str, Path], **choices: Any) -> tuple[dict[str, IntArray], Vocabulary, Vocabulary]:
    """Read named files under one numbering, in the order given. Returns triples by name, entities, relations."""
    entity_ids: dict[str, int] = {}
    relation_ids: dict[str, int] = {}
    triples: dict[str, IntArray] = {}
    for name, path in paths.items():
        table = read_triples(path, **choices)
        entity_map = _extend(entity_ids, table.entities)
        relation_map = _extend(relation_ids, table.relations)
        ids = np.empty((len(table.triples), 3), dtype=np.int64)
        ids[:, 0] = entity_map[table.triples[:, 0]]
        ids[:, 1] = relation_map[table.triples[:, 1]]
        ids[:, 2] = entity_map[table.triples[:, 2]]
        triples[name] = ids
    return triples, Vocabulary(entity_ids, "entity"), Vocabulary(relation_ids, "relation")


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def count_lines(path: Path) -> int:
    """Number of lines; a last line without a newline counts."""
    lines, last = 0, b"\n"
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")


def _extend(ids: dict[str, int], names: Iterable[str]) -> IntArray:
    """Give unseen names the next ids; returns the id of each name."""
    return np.fromiter((ids.setdefault(name, len(ids)) for name in names), dtype=np.int64)


def _recorded_hashes(slug: str, folder: Path) -> dict[str, str]:
    """Hashes that came with the files: what our fetch wrote, or a MANIFEST.json of the whole folder."""
    recorded: dict[str, str] = {}
    manifest = folder / "MANIFEST.json"
    if manifest.is_file():
        try:
            for row in parsed(manifest.read_bytes()):
                if row.get("slug") == slug:
                    recorded.update({name: facts["sha256"] for name, facts in row["files"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{manifest} is not a list of sets with the hashes of their files: {error}") from None
    own = folder / slug / RECORD
    return {**recorded, **(read_hashes(own) if own.is_file() else {})}


def read_hashes(record: Path) -> dict[str, str]:
    """What a fetch wrote down of its files: the sha256 of each."""
    return read_object(record, "the hashes of fetched files; delete it and fetch the set again")


def _own_file(folder: Path, part: str) -> Path | None:
    found = [folder / f"{part}{suffix}" for suffix in OWN_SUFFIXES if (folder / f"{part}{suffix}").is_file()]
    if len(found) > 1:
        raise DataError(f"{folder} has {part} twice: {', '.join(p.name for p in found)}; keep one")
    return found[0] if found else None


def _validates_on_train(files: Mapping[str, Path]) -> bool:
    if not {"train", "valid"} <= files.keys():
        return False
    triples, _, _ = read_parts({part: files[part] for part in ("train", "inference", "valid")})

    def inside(graph: IntArray) -> int:
        ends = np.unique(graph[:, [0, 2]])
        return int(np.isin(triples["valid"][:, [0, 2]], ends).all(axis=1).sum())

    return inside(triples["train"]) > inside(triples["inference"])
