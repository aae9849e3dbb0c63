"""The facts of a large graph less a few: the same names and ids, no list of triples, nothing sorted again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.facts import direct_blocks

if TYPE_CHECKING:
    from gamma_kg.graph.graph import KnowledgeGraph


class FewerFacts:
    """The facts of `kg` without some, given by ids [n, 3]; the graph of relations stays that of `kg`.

    A copy of its edges, about 16 bytes a fact.
    """

    path: Path | None = None

    def __init__(self, kg: KnowledgeGraph, gone: NDArray[np.int64]) -> None:
        self._kg = kg
        head, relation, tail = torch.from_numpy(np.ascontiguousarray(gone)).T
        there, back = kg.edges.find(head, relation, tail), kg.edges.find(tail, kg.inverse(relation), head)
        self.edges: Edges = kg.edges.without(torch.cat((there, back)).unique())
        self._gone = gone
        self.num_triples = kg.num_triples - len(there)

    def relation_graph_as(self, kind: str) -> Edges:
        return self._kg.relation_graph_as(kind)

    @cached_property
    def triples(self) -> Tensor:
        return torch.cat([*self.blocks(1 << 22), torch.empty(0, 3, dtype=torch.long)])

    def blocks(self, size: int) -> Iterator[Tensor]:
        return direct_blocks(self.edges, self._kg.num_relations, size)

    def fingerprint(self) -> str:
        return hashlib.sha256(self._kg.fingerprint().encode() + self._gone.tobytes()).hexdigest()
