"""`gamma index`: files of any size and format into a store, in steps that can be taken up again.

read      the inputs, as chunks of named triples (`spool.py`)
identify  names to ids (`identify.py`)
sort      triples to edges in the engine's layout (`sort.py`)
finish    names with their index, the relation graph, the header (`write.py`)

What each step made lies in G.gamma/building until the end; building/progress.json says which are done.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.names import LABEL_PROPERTIES, RdfNames
from gamma_kg.data.options import ReadReport, Tally
from gamma_kg.data.read import read_into, read_options
from gamma_kg.errors import DataError
from gamma_kg.graph.store.facts import edges_of_folder, open_store
from gamma_kg.graph.store.identify import batches, count_rows, identify, ids_of_chunk, local_counts
from gamma_kg.graph.store.layout import BUILDING, HEADER, PROGRESS, ArrayFacts, ArrayFolder, Header, is_store
from gamma_kg.graph.store.names import StoredNames, write_names, write_vocabulary
from gamma_kg.graph.store.sort import EdgeSorter
from gamma_kg.graph.store.spool import KINDS, Spool
from gamma_kg.graph.store.write import ARRAYS, commit, tidy, write_relation_graphs, writing
from gamma_kg.io.atomic import write_text
from gamma_kg.io.sealed import parsed, seal, unsealed
from gamma_kg.machine.memory import budget

MOST_ENTITIES = 2**31 - 1
MOST_TRIPLES = 2**40
MOST_RELATIONS = 2**30 - 1  # a relation and its inverse are two types of edges
# Triples that are looked at together while edges are put into parts, and the bytes at work for each.
MOST_ROWS, LEAST_ROWS, BYTES_PER_ROW = 1 << 21, 1 << 16, 400

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Indexed:
    """What a run of `index_files` made."""

    header: Header
    report: ReadReport | None  # None if everything had been read by an earlier run


def index_files(
    inputs: Sequence[str | Path],
    out: str | Path,
    *,
    append: bool = False,
    replace: bool = False,
    memory: str | int | None = None,
    tell: Tell = lambda text: None,
    **reading: Any,
) -> Indexed:
    """Makes a store of all facts in the inputs; options of reading as for `read_triples`.

    An input may be a store, too. With `append` the store's own facts come first and keep their ids. A run that was
    stopped is taken up again by the same call. `tell` hears what is being done.
    """
    store = Path(out)
    if not inputs:
        raise DataError("nothing to index: name at least one file")
    is_there = (store / HEADER).is_file()
    if append and not is_there:
        raise DataError(f"{store}: no store to append to; leave out --append to make one")
    if is_there and not append and not replace:
        if not _was_finished_by(store, inputs, reading):
            raise DataError(
                f"{store}: a store is there already; add to it with --append, or make it anew with --replace"
            )
        with writing(store):
            tidy(store)
            return Indexed(Header.read(store), None)
    if any(is_store(path) and Path(path).absolute() == store.absolute() for path in inputs):
        raise DataError(f"{store}: both an input and the output; add to a store with --append")
    with writing(store):
        wanted = [store, *inputs] if append else list(inputs)
        return _Build(store, wanted, budget(memory), tell, reading).run()


class _Build:
    """One store in the making. Each step is a method that leaves its mark in `progress` when it is done."""

    def __init__(self, store: Path, inputs: list[str | Path], memory: int, tell: Tell, reading: dict[str, Any]) -> None:
        self._store, self._inputs, self._memory, self._tell = store, inputs, memory, tell
        self._options = read_options(reading)
        self._work = store / BUILDING
        self._threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        self._folder = ArrayFolder(self._work / ARRAYS)
        self._rdf: RdfNames | None = None
        self._report: ReadReport | None = None
        self._made_of = _made_of(inputs, self._options)
        self._progress: dict[str, Any] = self._earlier()

    def run(self) -> Indexed:
        for step in (self._read, self._identify, self._sort, self._finish):
            name = step.__name__.removeprefix("_")
            if name not in self._progress["done"]:
                step()
                self._mark(name)
        header = Header.read(self._store)
        return Indexed(header, self._report)

    def _earlier(self) -> dict[str, Any]:
        """What an earlier run with the same inputs has done."""
        try:
            found = unsealed(parsed((self._work / PROGRESS).read_bytes()))
            arrays = {name: ArrayFacts(**facts) for name, facts in found["arrays"].items()}
            # Killed after its arrays were moved and before they were the store's, it begins anew.
            if found["made_of"] == self._made_of and self._folder.has(arrays):
                self._folder.arrays = arrays
                self._tell(f"taking up an earlier run ({', '.join(found['done']) or 'nothing finished yet'})")
                return dict(found)
        except (OSError, ValueError):
            pass
        shutil.rmtree(self._work, ignore_errors=True)
        return {"made_of": self._made_of, "done": [], "arrays": {}, "read": 0}

    def _mark(self, step: str) -> None:
        if step == "finish":
            return
        self._progress["done"].append(step)
        self._save_progress()

    def _save_progress(self) -> None:
        arrays = {name: vars(facts) for name, facts in self._folder.arrays.items()}
        write_text(self._work / PROGRESS, json.dumps(seal({**self._progress, "arrays": arrays})), sync=True)

    def _read(self) -> None:
        at = self._progress
        spool = Spool(
            self._work,
            first_chunk=at.get("chunks", 0),
            position=at.get("position", 0),
            num_triples=at.get("triples", 0),
        )
        tally = Tally(self._options)
        for number, path in enumerate(self._inputs[at["read"] :], at["read"]):
            self._tell(f"reading {path}")
            if is_store(path):
                self._add_store(Path(path), spool)
            else:
                # Blank nodes are local to a file: two inputs may both have a _:b0.
                scope = f"input{number}-" if len(self._inputs) > 1 else ""
                self._rdf = read_into(path, spool, tally, self._rdf, scope)
            spool.flush()
            if self._rdf is None:
                at.update(read=number + 1, chunks=spool.num_chunks, position=spool.position, triples=spool.num_triples)
                self._save_progress()
        if spool.num_triples == 0:
            hint = "; keep the literals (literals as-entities)" if tally.literals_skipped else ""
            raise DataError(f"{', '.join(map(str, self._inputs))}: no triples found{hint}")
        if spool.num_triples > MOST_TRIPLES:
            raise DataError(f"{spool.num_triples:,} triples; a store holds at most {MOST_TRIPLES:,}")
        at["chunks"] = spool.num_chunks
        self._report = tally.report(spool.num_triples)
        at["axioms"] = at.get("axioms", []) + [list(axiom) for axiom in self._report.axioms]

    def _add_store(self, path: Path, spool: Spool) -> None:
        kg = open_store(path)
        if kg.report is not None:
            self._progress["axioms"] = [list(axiom) for axiom in kg.report.axioms]
        names = {}
        for kind, stored in (("entity", kg.entities), ("relation", kg.relations)):
            assert isinstance(stored, StoredNames)
            names[kind] = stored.identifier_batches()
            if stored.told["identifiers"]:
                self._rdf = self._rdf or RdfNames()
                for identifier, label in stored.labels():
                    self._rdf.add_label(identifier, LABEL_PROPERTIES[0], label, None)
        spool.add_known(names, (block.numpy() for block in kg.triple_blocks()))

    def _identify(self) -> None:
        self._tell("giving ids to the names")
        for kind in KINDS:
            identify(self._work, kind, memory=self._memory, threads=self._threads)
        counts = {kind: count_rows(self._work / f"names.{kind}.parquet") for kind in KINDS}
        if counts["entity"] > MOST_ENTITIES:
            raise DataError(f"{counts['entity']:,} entities; a store holds at most {MOST_ENTITIES:,}")
        if counts["relation"] > MOST_RELATIONS:
            raise DataError(f"{counts['relation']:,} relations; a store holds at most {MOST_RELATIONS:,}")
        self._progress["counts"] = counts
        self._tell(f"writing {counts['entity']:,} names")
        self._progress["names"] = self._write_names()

    def _write_names(self) -> dict[str, Any]:
        in_batches = {
            kind: (part.to_list() for part in batches(self._work / f"names.{kind}.parquet", "name")) for kind in KINDS
        }
        if self._rdf is None:
            return {kind: write_names(self._folder, in_batches[kind], kind) for kind in KINDS}
        # RDF is shown under labels and short names, which are chosen by looking at all of them together.
        ids = {kind: {name: 0 for batch in in_batches[kind] for name in batch} for kind in KINDS}
        known = Spool(self._work)
        known.entity_ids, known.relation_ids = ids["entity"], ids["relation"]
        vocabularies = dict(zip(KINDS, self._rdf.vocabularies(known), strict=True))
        return {kind: write_vocabulary(self._folder, vocabularies[kind], kind) for kind in KINDS}

    def _sort(self) -> None:
        counts = self._progress["counts"]
        self._tell("sorting the edges")
        sorter = EdgeSorter(self._work, counts["entity"], counts["relation"], self._memory)
        for triples in self._triples():
            sorter.count(triples)
        parts = sorter.split(self._triples())
        self._progress["num_triples"] = sorter.write(parts, self._folder)

    def _triples(self) -> Iterator[NDArray[np.int64]]:
        """All triples by id, in blocks."""
        num_chunks = self._progress["chunks"]
        counts = {kind: local_counts(self._work, kind, num_chunks) for kind in KINDS}
        first = dict.fromkeys(KINDS, 0)
        rows = min(max(self._memory // BYTES_PER_ROW, LEAST_ROWS), MOST_ROWS)
        for number in range(num_chunks):
            ids = {kind: ids_of_chunk(self._work, kind, first[kind], counts[kind][number]) for kind in KINDS}
            first = {kind: first[kind] + counts[kind][number] for kind in KINDS}
            path = self._work / f"chunk-{number}.triples.bin"
            if path.stat().st_size == 0:
                continue
            local = np.memmap(path, dtype="<i4", mode="r").reshape(-1, 3)
            for start in range(0, len(local), rows):
                head, relation, tail = local[start : start + rows].T
                yield np.stack((ids["entity"][head], ids["relation"][relation], ids["entity"][tail]), axis=1)

    def _finish(self) -> None:
        self._tell("building the graph of relations")
        at, counts = self._progress, self._progress["counts"]
        axioms = at.get("axioms", [])
        header = Header("", counts["entity"], counts["relation"], at["num_triples"], at["names"], axioms=axioms)
        write_relation_graphs(self._folder, edges_of_folder(self._folder, counts["entity"], counts["relation"]))
        commit(self._store, self._folder, header)


def _was_finished_by(store: Path, inputs: Sequence[str | Path], reading: dict[str, Any]) -> bool:
    """Whether the same call made the store and was killed while it tidied up: its notes are still there."""
    work = store / BUILDING
    try:
        found = unsealed(parsed((work / PROGRESS).read_bytes()))
        return not (work / ARRAYS).exists() and bool(found["made_of"] == _made_of(inputs, read_options(reading)))
    except (OSError, ValueError, LookupError):
        return False


def _made_of(inputs: Sequence[str | Path], options: Any) -> Any:
    """What tells one run from another, as JSON gives it back."""
    return json.loads(json.dumps([[[str(path), _state(path)] for path in inputs], repr(options)]))


def _state(path: str | Path) -> Any:
    """What tells whether an input is still the same: sizes and times of its files, or a store's generation."""
    if str(path) == "-" or str(path).startswith("sparql:"):
        return os.getpid()  # a stream can't be taken up again
    path = Path(path)
    if is_store(path):
        return Header.read(path).generation
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [[str(file), file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.exists()]
