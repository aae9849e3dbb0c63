"""The facts of a store, mapped: what `KnowledgeGraph` asks for is read when it is looked at."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gamma_kg.data.options import ReadReport
from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.facts import direct_blocks
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import inverse_types, num_types
from gamma_kg.graph.relation_pairs import KINDS
from gamma_kg.graph.store.layout import AnyArray, ArrayFolder, Header, check_arrays
from gamma_kg.graph.store.names import StoredNames

EDGE_ARRAYS = ("node_ptr", "group_type", "group_ptr", "neighbour")
# Hashed on opening, in a tenth of a second: graphs that rules and whole-graph answers read from end to end anyway.
VERIFIED_BYTES = 1 << 27


class StoredFacts:
    """Facts in a store."""

    def __init__(self, path: Path, header: Header, folder: ArrayFolder) -> None:
        self.path: Path | None = path
        self._header = header
        self.edges = edges_of_folder(folder, header.num_entities, header.num_relations)
        self._relation_graphs = {
            kind: _edges(
                folder, f"relations.{kind}", num_types(header.num_relations), torch.tensor(inverse, dtype=torch.int32)
            )
            for kind, (_, inverse) in KINDS.items()
        }

    def relation_graph_as(self, kind: str) -> Edges:
        return self._relation_graphs[kind]

    @property
    def num_triples(self) -> int:
        return self._header.num_triples

    @cached_property
    def triples(self) -> Tensor:
        blocks = list(self.blocks(1 << 22))
        return torch.cat(blocks) if blocks else torch.empty(0, 3, dtype=torch.long)

    def blocks(self, size: int) -> Iterator[Tensor]:
        return direct_blocks(self.edges, self._header.num_relations, size)

    def fingerprint(self) -> str:
        """From the hashes of the edges that the header holds."""
        told = [self._header.arrays[f"edges.{name}"].sha256 for name in EDGE_ARRAYS]
        return hashlib.sha256(" ".join(told).encode()).hexdigest()


def open_store(path: str | Path) -> KnowledgeGraph:
    """The graph of a store. The header and all sizes are checked, and the content of a small one.

    Of a large one nothing else is read: what is looked at later is held against its bounds there.
    """
    path = Path(path)
    for attempt in (1, 2):
        header = Header.read(path)
        folder = ArrayFolder(path / header.generation, header.arrays)
        try:
            facts = StoredFacts(path.absolute(), header, folder)
            entities, relations = (StoredNames(folder, kind, header.names[kind]) for kind in ("entity", "relation"))
            if sum(array.num_bytes for array in header.arrays.values()) <= VERIFIED_BYTES:
                check_arrays(path, header)
            break
        except DataError:
            # Another process may have put a new generation in place and cleared this one away meanwhile.
            if attempt == 2 or Header.read(path).generation == header.generation:
                raise
    axioms = tuple((kind, a, b) for kind, a, b in header.axioms)
    report = ReadReport(rows=header.num_triples, files=(str(path),), axioms=axioms) if axioms else None
    return KnowledgeGraph.of_facts(facts, entities, relations, report)


def verify_store(path: str | Path) -> Header:
    """Reads the whole store and compares it with its hashes; returns its header."""
    path = Path(path)
    header = Header.read(path)
    check_arrays(path, header)
    return header


def edges_of_folder(folder: ArrayFolder, num_entities: int, num_relations: int) -> Edges:
    """The edges of the graph itself, mapped."""
    inverse = torch.from_numpy(inverse_types(num_relations).astype(np.int32))
    return _edges(folder, "edges", num_entities, inverse)


def _edges(folder: ArrayFolder, name: str, num_nodes: int, inverse: Tensor) -> Edges:
    arrays = {array: _tensor(folder.map(f"{name}.{array}")) for array in EDGE_ARRAYS}
    return Edges(num_nodes=num_nodes, num_types=len(inverse), inverse=inverse, **arrays)


def _tensor(array: AnyArray) -> Tensor:
    with warnings.catch_warnings():
        # torch knows no read-only tensors and warns; nothing in this package writes into edges.
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(array)
