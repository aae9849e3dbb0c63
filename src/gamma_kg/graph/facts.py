"""The facts of a graph, wherever they are kept: what `KnowledgeGraph` asks of memory and of a store on disk alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.inverse import is_inverse
from gamma_kg.graph.relation_graph import build_relation_graph
from gamma_kg.graph.relation_pairs import relation_graph_with_pairs

BLOCK_TRIPLES = 1 << 20


def direct_blocks(edges: Edges, num_relations: int, size: int) -> Iterator[Tensor]:
    """The triples of sorted edges: those of relations that are no inverses, so about half of each block of edges."""
    for start in range(0, edges.num_edges, 2 * size):
        node, type_, neighbour = edges.slice(start, min(start + 2 * size, edges.num_edges))
        is_direct = ~is_inverse(type_, num_relations)
        yield torch.stack((node[is_direct], type_[is_direct], neighbour[is_direct]), dim=1)


class Facts(Protocol):
    """Triples and what is made of them. Nothing here depends on names."""

    @property
    def path(self) -> Path | None:
        """The store they are kept in, if they are on disk."""

    @property
    def num_triples(self) -> int: ...

    @property
    def triples(self) -> Tensor:
        """All of them, int64 [n, 3]; a store has to build this."""

    def blocks(self, size: int) -> Iterator[Tensor]:
        """All triples, at most about `size` at a time, int64 [n, 3]."""

    @property
    def edges(self) -> Edges: ...

    def relation_graph_as(self, kind: str) -> Edges:
        """The graph of relations of a kind (`relation_pairs.KINDS`)."""

    def fingerprint(self) -> str:
        """The same for the same triples by id, another for others."""


class FactsInMemory:
    """Triples in an array; edges and the relation graph are built when first asked for."""

    path: Path | None = None

    def __init__(self, triples: NDArray[np.int64], num_entities: int, num_relations: int) -> None:
        self.triples = torch.from_numpy(triples)
        self._num_entities, self._num_relations = num_entities, num_relations

    @property
    def num_triples(self) -> int:
        return len(self.triples)

    def blocks(self, size: int) -> Iterator[Tensor]:
        return iter(self.triples.split(size)) if len(self.triples) else iter(())

    @cached_property
    def edges(self) -> Edges:
        return Edges.of_triples(self.triples.numpy(), self._num_entities, self._num_relations)

    def relation_graph_as(self, kind: str) -> Edges:
        return self._meetings if kind == "meetings" else self._with_pairs

    @cached_property
    def _meetings(self) -> Edges:
        return build_relation_graph(self.edges)

    @cached_property
    def _with_pairs(self) -> Edges:
        return relation_graph_with_pairs(self.edges)

    def fingerprint(self) -> str:
        return hashlib.sha256(self.triples.numpy().tobytes()).hexdigest()
