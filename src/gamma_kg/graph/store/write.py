"""Writing a generation of a store, and putting it in the place of the one before."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.relation_pairs import KINDS, relation_graphs_in_parts
from gamma_kg.graph.store.facts import EDGE_ARRAYS
from gamma_kg.graph.store.layout import BUILDING, HEADER, LOCK, PROGRESS, ArrayFolder, Header
from gamma_kg.graph.store.names import write_vocabulary
from gamma_kg.io.atomic import put_in_place
from gamma_kg.io.lock import locked

ARRAYS = "arrays"
GENERATION = re.compile(r"[0-9a-f]{16}")
PLURAL = {"entity": "entities", "relation": "relations"}


def save_graph(kg: KnowledgeGraph, path: str | Path) -> None:
    """Writes a graph as a store; one that is there already is replaced, in one step."""
    store = Path(path)
    if kg.path is not None:
        raise DataError(f"the graph is a store already: copy the folder {kg.path}")
    if kg.edges.num_edges != 2 * len(np.unique(kg.triples.numpy(), axis=0)):
        raise DataError("a store holds each fact once: build the graph without keep_duplicates")
    with writing(store):
        with removed_on_failure(store):
            shutil.rmtree(store / BUILDING, ignore_errors=True)
            folder = ArrayFolder(store / BUILDING / ARRAYS)
            write_edges(folder, "edges", kg.edges)
            write_relation_graphs(folder, kg.edges)
            names = {kind: write_vocabulary(folder, getattr(kg, plural), kind) for kind, plural in PLURAL.items()}
        axioms = [] if kg.report is None else [list(axiom) for axiom in kg.report.axioms]
        header = Header("", kg.num_entities, kg.num_relations, kg.num_triples, names, axioms=axioms)
        commit(store, folder, header)


@contextmanager
def writing(store: Path) -> Iterator[None]:
    """The lock on a store; a folder that is something else is refused."""
    if store.exists() and not store.is_dir():
        raise DataError(f"{store}: a file is there; choose another name for the store")
    if store.is_dir() and not (store / HEADER).exists():
        is_built = (store / BUILDING).is_dir()  # a generation beside it was not made the store's: its writer was killed
        strangers = [
            entry.name
            for entry in store.iterdir()
            if entry.name not in (BUILDING, LOCK) and not (is_built and GENERATION.fullmatch(entry.name))
        ]
        if strangers:
            raise DataError(f"{store}: a folder with other things in it ({strangers[0]}); choose another name")
    with locked(store / LOCK, str(store)):
        yield


@contextmanager
def removed_on_failure(store: Path) -> Iterator[None]:
    """Work that can't be taken up again does not stay behind."""
    try:
        yield
    except BaseException:
        shutil.rmtree(store / BUILDING, ignore_errors=True)
        raise


def write_edges(folder: ArrayFolder, name: str, edges: Edges) -> None:
    for array in EDGE_ARRAYS:
        folder.write(f"{name}.{array}", getattr(edges, array).numpy())


def write_relation_graphs(folder: ArrayFolder, edges: Edges) -> None:
    """The graphs of relations of the edges, of each kind, written as they are computed."""
    with _RelationGraphWriter(folder, "meetings") as meetings, _RelationGraphWriter(folder, "pairs") as pairs:
        for met, both in relation_graphs_in_parts(edges):
            meetings.append(*met)
            pairs.append(*both)


class _RelationGraphWriter:
    """A graph of relations that comes in bands of relations."""

    def __init__(self, folder: ArrayFolder, kind: str) -> None:
        self._folder, self._name = folder, f"relations.{kind}"
        self._counts = [np.empty((0, len(KINDS[kind][0])), dtype=np.int64)]
        self._neighbour = folder.writer(f"{self._name}.neighbour", np.int32)

    def append(self, count: NDArray[np.int64], neighbour: NDArray[np.int32]) -> None:
        self._counts.append(count)
        self._neighbour.append(neighbour)

    def __enter__(self) -> _RelationGraphWriter:
        self._neighbour.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        with self._neighbour:
            if kind is not None:
                return
            self._folder.add(self._neighbour)
        count = np.concatenate(self._counts)
        is_group = count > 0
        self._folder.write(f"{self._name}.node_ptr", np.append(0, is_group.sum(axis=1).cumsum()), np.int64)
        self._folder.write(f"{self._name}.group_type", np.nonzero(is_group)[1], np.int32)
        self._folder.write(f"{self._name}.group_ptr", np.append(0, count[is_group].cumsum()), np.int64)


def commit(store: Path, folder: ArrayFolder, header: Header) -> None:
    """Names the generation after what is in it and makes it the store's; the one before is cleared away."""
    told = " ".join(f"{name} {facts.sha256}" for name, facts in sorted(folder.arrays.items()))
    generation = hashlib.sha256(told.encode()).hexdigest()[:16]
    home = store / generation
    # The same content may be there already: as the store's own, or left over from a crash.
    if not (home.exists() and (store / HEADER).exists() and Header.read(store).generation == generation):
        put_in_place(folder.path, home)
    replace(header, generation=generation, arrays=folder.arrays).write(store)
    tidy(store)


def tidy(store: Path) -> None:
    """Clears away what the store no longer needs; last what tells that it was made: this may be killed, too."""
    generation = Header.read(store).generation
    for entry in store.iterdir():
        if GENERATION.fullmatch(entry.name) and entry.name != generation:
            shutil.rmtree(entry, ignore_errors=True)
    work = store / BUILDING
    for entry in work.iterdir() if work.is_dir() else ():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != PROGRESS:
            entry.unlink(missing_ok=True)
    shutil.rmtree(work, ignore_errors=True)
