"""The graphs that a server holds: those of the command line and those that were uploaded, each under a short id."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError, did_you_mean
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.serve.facts import Types, best_connected, degrees, relation_counts
from gamma_kg.serve.names import SMALL, LargeNameSearch, NameSearch
from gamma_kg.serve.review import Review

MOST_LISTED = 1000  # names that are shown before anything is typed, where not all are kept in memory


class UnknownGraphError(DataError):
    """No graph has this id."""


class FirstTime:
    """Lets one thread in until one has come out again, and then all: what is made once and kept is made by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self._is_over:
            yield
            return
        with self._lock:
            yield
        self._is_over = True


class HostedGraph:
    """A graph with what the server keeps beside it; what is costly is made when first asked for."""

    def __init__(self, id_: str, title: str, kg: KnowledgeGraph, review: Review, *, is_uploaded: bool = False) -> None:
        self.id, self.title, self.kg, self.review = id_, title, kg, review
        self.is_uploaded = is_uploaded
        self.being_met = FirstTime()  # by those who ask: what the model and the rules make of it is made by one of them
        self.calibration: str | None = None  # what fitting the probabilities found, in a sentence

    @cached_property
    def entities(self) -> NameSearch | LargeNameSearch:
        if self.kg.path is not None or self.kg.num_entities > SMALL:
            return LargeNameSearch(self.kg.entities, best_connected(self.kg, MOST_LISTED))
        return NameSearch(self.kg.entities, degrees(self.kg).numpy())

    @cached_property
    def relations(self) -> NameSearch:
        return NameSearch(self.kg.relations, self.facts_by_relation)

    @cached_property
    def facts_by_relation(self) -> NDArray[np.int64]:
        return relation_counts(self.kg)

    @cached_property
    def types(self) -> Types:
        return Types(self.kg)

    def facts_with(self, relation: int, offset: int, limit: int) -> list[tuple[str, str]]:
        """A page of heads and tails of a relation's facts."""
        found: list[tuple[str, str]] = []
        for block in self.kg.triple_blocks():
            of_relation = block[block[:, 1] == relation]
            rows = of_relation[offset : offset + limit - len(found)]
            offset = max(0, offset - len(of_relation))
            found += [(self.kg.entities[h], self.kg.entities[t]) for h, _, t in rows.tolist()]
            if len(found) >= limit:
                break
        return found

    def prepare(self) -> None:
        """Builds all indices, so that the first person does not wait for them."""
        self.kg.edges, self.kg.relation_graph, self.entities, self.relations, self.types  # noqa: B018


class HostedGraphs:
    """Graphs by id, in the order in which they came."""

    def __init__(self, review_folder: Path | None = None) -> None:
        self._graphs: dict[str, HostedGraph] = {}
        self._lock = threading.Lock()
        self._review_folder = review_folder

    def add(self, title: str, kg: KnowledgeGraph, *, is_uploaded: bool = False) -> HostedGraph:
        with self._lock:
            id_ = self._free_id(title)
            path = None
            if self._review_folder is not None and not is_uploaded:
                path = self._review_folder / f"{id_}.jsonl"
            graph = HostedGraph(id_, title, kg, Review(path), is_uploaded=is_uploaded)
            self._graphs[id_] = graph
        return graph

    def remove(self, id_: str) -> None:
        """Forget an uploaded graph; those of the command line stay."""
        graph = self[id_]
        if not graph.is_uploaded:
            raise DataError(f"{id_!r} was named when the server was started and stays as long as it runs")
        with self._lock:
            self._graphs.pop(id_, None)

    def __getitem__(self, id_: str) -> HostedGraph:
        found = self._graphs.get(id_)
        if found is None:
            raise UnknownGraphError(f"no graph has the id {id_!r} among {len(self)}{did_you_mean(id_, self._graphs)}")
        return found

    def __iter__(self) -> Iterator[HostedGraph]:
        return iter(list(self._graphs.values()))

    def __len__(self) -> int:
        return len(self._graphs)

    def _free_id(self, title: str) -> str:
        plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "graph"
        number, id_ = 1, base
        while id_ in self._graphs:
            number += 1
            id_ = f"{base}-{number}"
        return id_
