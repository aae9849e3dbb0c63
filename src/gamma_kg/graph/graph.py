"""KnowledgeGraph: named triples, their ids, inverses, sorted edges and the graph of relations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.data.read import EncodedTriples, ReadReport, encode_frame, encode_triples, read_triples
from gamma_kg.data.vocabulary import Vocabulary
from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.relation_graph import build_relation_graph

if TYPE_CHECKING:
    import pandas
    import polars


class KnowledgeGraph:
    """Facts (head, relation, tail) with names, and what message passing needs of them.

    Relation ids below `num_relations` are the user's relations; `inverse(r)` is the same relation read from
    tail to head, with an id of its own, r + num_relations. A repeated triple counts once, unless `keep_duplicates`.
    """

    def __init__(
        self,
        triples: NDArray[np.integer] | Tensor,
        entities: Sequence[str],
        relations: Sequence[str],
        *,
        keep_duplicates: bool = False,
        report: ReadReport | None = None,
    ) -> None:
        self.entities = entities if isinstance(entities, Vocabulary) else Vocabulary(entities, "entity")
        self.relations = relations if isinstance(relations, Vocabulary) else Vocabulary(relations, "relation")
        self.report = report
        ids = np.asarray(triples, dtype=np.int64).reshape(-1, 3)
        limits = (self.num_entities, self.num_relations, self.num_entities)
        for column, (what, limit) in enumerate(zip(("head", "relation", "tail"), limits, strict=True)):
            if len(ids) and not (0 <= ids[:, column].min() and ids[:, column].max() < limit):
                raise DataError(
                    f"{what} ids must lie in 0..{limit - 1}; found {ids[:, column].min()}..{ids[:, column].max()}"
                )
        self.triples = torch.from_numpy(ids if keep_duplicates else _distinct(ids, limits))

    @classmethod
    def from_triples(
        cls,
        triples: Iterable[tuple[str, str, str]],
        entities: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
        keep_duplicates: bool = False,
    ) -> KnowledgeGraph:
        """From (head, relation, tail) names. Given lists fix the vocabulary, so entities without a triple exist too."""
        return cls._from_encoded(encode_triples(triples, entities=entities, relations=relations), keep_duplicates)

    @classmethod
    def from_file(cls, path: str | Path, *, keep_duplicates: bool = False, **options: Any) -> KnowledgeGraph:
        """From a file of triples; the format follows from the name's ending. Options as for `read_triples`."""
        return cls._from_encoded(read_triples(path, **options), keep_duplicates)

    @classmethod
    def from_dataframe(
        cls,
        frame: polars.DataFrame | pandas.DataFrame,
        columns: Sequence[str | int] | None = None,
        keep_duplicates: bool = False,
    ) -> KnowledgeGraph:
        """From a polars or pandas table: its first three columns, or the `columns` named."""
        return cls._from_encoded(encode_frame(frame, columns=columns), keep_duplicates)

    @classmethod
    def _from_encoded(cls, encoded: EncodedTriples, keep_duplicates: bool) -> KnowledgeGraph:
        return cls(
            encoded.triples,
            encoded.entities,
            encoded.relations,
            keep_duplicates=keep_duplicates,
            report=encoded.report,
        )

    @property
    def num_entities(self) -> int:
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """How many relations the user named; inverses are not counted."""
        return len(self.relations)

    @property
    def num_triples(self) -> int:
        return len(self.triples)

    def entity_id(self, name: str) -> int:
        return self.entities.id(name)

    def relation_id(self, name: str) -> int:
        return self.relations.id(name)

    def inverse(self, relation: Tensor) -> Tensor:
        """The ids of the same relations read from the other end."""
        return (relation + self.num_relations) % (2 * self.num_relations)

    def direct(self, relation: Tensor) -> Tensor:
        """The ids of the relations as the user named them, whichever way they are read."""
        return relation % self.num_relations

    def answers(self, source: int, relation: int) -> Tensor:
        """Entities already known to answer the query (source, relation); int64."""
        edges = self.edges
        groups = slice(int(edges.node_ptr[source]), int(edges.node_ptr[source + 1]))
        at = int(torch.searchsorted(edges.group_type[groups], relation))
        if at == groups.stop - groups.start or int(edges.group_type[groups][at]) != relation:
            return torch.empty(0, dtype=torch.long)
        group = groups.start + at
        return edges.neighbour[int(edges.group_ptr[group]) : int(edges.group_ptr[group + 1])].long()

    @cached_property
    def edges(self) -> Edges:
        """Every triple and its inverse, sorted once."""
        return Edges.of_triples(self.triples.numpy(), self.num_entities, self.num_relations)

    @cached_property
    def relation_graph(self) -> Edges:
        """The graph whose nodes are the relations and their inverses (docs/model.md §2)."""
        return build_relation_graph(self.edges)

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({self.num_entities} entities, {self.num_relations} relations, {self.num_triples} triples)"
        )


def _distinct(ids: NDArray[np.int64], limits: tuple[int, int, int]) -> NDArray[np.int64]:
    """The triples in their first order, each once."""
    key: NDArray[np.int64] = (ids[:, 0] * limits[1] + ids[:, 1]) * limits[2] + ids[:, 2]
    in_order = np.sort(key)
    if not (in_order[1:] == in_order[:-1]).any():
        return ids
    _, first = np.unique(key, return_index=True)
    return ids[np.sort(first)]
