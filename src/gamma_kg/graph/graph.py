"""KnowledgeGraph: named triples, their ids, inverses, sorted edges and the graph of relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gamma_kg.data.read import EncodedTriples, ReadReport, encode_frame, encode_triples, read_triples
from gamma_kg.data.vocabulary import Names, Vocabulary
from gamma_kg.errors import DataError
from gamma_kg.graph.changing import holds, part_of, with_facts, without_facts
from gamma_kg.graph.describe import Description, describe
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.facts import BLOCK_TRIPLES, Facts, FactsInMemory
from gamma_kg.graph.inverse import direct_of, inverse_of, num_types
from gamma_kg.graph.ordering import first_of_each
from gamma_kg.graph.store.layout import is_store
from gamma_kg.io.shown import html_text
from gamma_kg.io.table import table

if TYPE_CHECKING:
    import pandas
    import polars


class KnowledgeGraph:
    """Facts (head, relation, tail) with names, and what message passing needs of them.

    Relation ids below `num_relations` are the user's relations; `inverse(r)` is the same relation read from
    tail to head, with an id of its own (`graph/inverse.py`). A repeated triple counts once, unless `keep_duplicates`.
    The facts lie in memory, or in a store on disk of which only what is asked for is read (`open`).
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
        self.entities = entities if isinstance(entities, Names) else Vocabulary(entities, "entity")
        self.relations = relations if isinstance(relations, Names) else Vocabulary(relations, "relation")
        self.report = report
        ids = np.asarray(triples, dtype=np.int64).reshape(-1, 3)
        limits = (self.num_entities, self.num_relations, self.num_entities)
        for column, (what, limit) in enumerate(zip(("head", "relation", "tail"), limits, strict=True)):
            if len(ids) and not (0 <= ids[:, column].min() and ids[:, column].max() < limit):
                raise DataError(
                    f"{what} ids must lie in 0..{limit - 1}; found {ids[:, column].min()}..{ids[:, column].max()}"
                )
        ids = ids if keep_duplicates else _distinct(ids, limits)
        self._facts: Facts = FactsInMemory(ids, self.num_entities, self.num_relations)

    @classmethod
    def of_facts(
        cls, facts: Facts, entities: Names, relations: Names, report: ReadReport | None = None
    ) -> KnowledgeGraph:
        """A graph of facts that are kept elsewhere, and are distinct already."""
        kg = cls.__new__(cls)
        kg.entities, kg.relations, kg.report, kg._facts = entities, relations, report, facts
        return kg

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
        """From a file of triples; the format follows from the name's ending. Options as for `read_triples`.

        A store is opened.
        """
        if is_store(path):
            return cls.open(path)
        return cls._from_encoded(read_triples(path, **options), keep_duplicates)

    @classmethod
    def open(cls, path: str | Path) -> KnowledgeGraph:
        """The graph of a store (`gamma index`, `save`): at once, whatever its size; it is read as it is used."""
        from gamma_kg.graph.store.facts import open_store

        return open_store(path)

    def save(self, path: str | Path) -> None:
        """Write the graph as a store, a folder that `open` opens; one that is there already is replaced."""
        from gamma_kg.graph.store.write import save_graph

        save_graph(self, path)

    @classmethod
    def from_dataframe(
        cls,
        frame: polars.DataFrame | pandas.DataFrame,
        columns: Sequence[str | int] | None = None,
        keep_duplicates: bool = False,
        id_column: str | int | None = None,
    ) -> KnowledgeGraph:
        """From a polars or pandas table: its first three columns, or the `columns` named.

        With `id_column` each row is a thing that this column names, and each other column is a relation.
        """
        return cls._from_encoded(encode_frame(frame, columns=columns, id_column=id_column), keep_duplicates)

    @classmethod
    def from_rdflib(cls, graph: Any, **options: Any) -> KnowledgeGraph:
        """From an `rdflib.Graph`; options as for `read_triples`."""
        from gamma_kg.data.outside import encode_rdflib

        return cls._from_encoded(encode_rdflib(graph, **options), False)

    @classmethod
    def from_networkx(cls, graph: Any, relation: str = "relation", default: str = "linked to") -> KnowledgeGraph:
        """From a networkx graph: the relation is an edge's attribute, else its key in a multigraph, else `default`."""
        from gamma_kg.data.outside import encode_networkx

        return cls._from_encoded(encode_networkx(graph, relation, default), False)

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
        return self._facts.num_triples

    @property
    def triples(self) -> Tensor:
        """All triples, int64 [n, 3]. A store builds this on first use; where a graph may be large, take the blocks."""
        return self._facts.triples

    def triple_blocks(self, size: int = BLOCK_TRIPLES) -> Iterator[Tensor]:
        """All triples, about `size` at a time, int64 [n, 3]."""
        return self._facts.blocks(size)

    @property
    def path(self) -> Path | None:
        """The store that the graph was opened from, if it was."""
        return self._facts.path

    def fingerprint(self) -> str:
        """The same for the same triples by id, another for others."""
        return self._facts.fingerprint()

    def entity_id(self, name: str) -> int:
        return self.entities.id(name)

    def relation_id(self, name: str) -> int:
        return self.relations.id(name)

    @property
    def num_types(self) -> int:
        """How many relation ids there are, inverses included."""
        return num_types(self.num_relations)

    def inverse(self, relation: Tensor) -> Tensor:
        """The ids of the same relations read from the other end."""
        return inverse_of(relation, self.num_relations)

    def direct(self, relation: Tensor) -> Tensor:
        """The ids of the relations as the user named them, whichever way they are read."""
        return direct_of(relation, self.num_relations)

    def answers(self, source: int, relation: int) -> Tensor:
        """Entities already known to answer the query (source, relation); int64."""
        # In numpy: a search in so few numbers takes no time, a call of torch does.
        edges = self.edges
        first, last = edges.node_ptr[source : source + 2].tolist()
        types = edges.group_type[first:last].numpy()
        at = int(types.searchsorted(relation))
        if at == len(types) or types[at] != relation:
            return torch.empty(0, dtype=torch.long)
        begin, end = edges.group_ptr[first + at : first + at + 2].tolist()
        return edges.neighbour[begin:end].long()

    @property
    def edges(self) -> Edges:
        """Every triple and its inverse, sorted once."""
        return self._facts.edges

    @property
    def relation_graph(self) -> Edges:
        """The graph whose nodes are the relations and their inverses (docs/model.md §2)."""
        return self._facts.relation_graph_as("meetings")

    def relation_graph_as(self, kind: str) -> Edges:
        """The graph of relations of the kind that a model asks for (`GammaConfig.relation_graph`), built once."""
        return self._facts.relation_graph_as(kind)

    def add(self, facts: Iterable[tuple[str, str, str]]) -> KnowledgeGraph:
        """A new graph with further facts (head, relation, tail); ids of known names stay."""
        return KnowledgeGraph(*with_facts(self, facts), report=self.report)

    def without(self, facts: Iterable[tuple[str, str, str]]) -> KnowledgeGraph:
        """A new graph less these facts; names and ids stay, also of what has no fact left."""
        return KnowledgeGraph(without_facts(self, facts), self.entities, self.relations, report=self.report)

    def subgraph(
        self, entities: Iterable[str] | None = None, relations: Iterable[str] | None = None, hops: int = 0
    ) -> KnowledgeGraph:
        """A new graph of the facts of these relations between these entities and what is up to `hops` facts away."""
        return KnowledgeGraph(*part_of(self, entities, relations, hops), report=self.report)

    def describe(self, search: str | None = None) -> Description:
        """Counts, relations with examples and patterns, types, components, degrees; `search` finds names."""
        return describe(self, search=search)

    def to_dataframe(self, library: Literal["polars", "pandas"] = "polars") -> Any:
        """All facts as a table: head, relation, tail and what the data calls them (head_id, relation_id, tail_id)."""
        columns: dict[str, list[str]] = {}
        triples = self.triples
        for suffix in ("", "_id"):
            for column, (role, names) in enumerate(
                (("head", self.entities), ("relation", self.relations), ("tail", self.entities))
            ):
                name = names.identifier if suffix else names.__getitem__
                called = {index: name(index) for index in triples[:, column].unique().tolist()}
                columns[role + suffix] = [called[index] for index in triples[:, column].tolist()]
        return table(columns, library)

    def __len__(self) -> int:
        return self.num_triples

    def __bool__(self) -> bool:
        return True  # a graph without facts is still a graph

    def __contains__(self, item: object) -> bool:
        """Whether a fact (head, relation, tail) is in the graph, or an entity of this name."""
        if isinstance(item, str):
            return item in self.entities
        return isinstance(item, Sequence) and len(item) == 3 and holds(self, item)

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """The facts by name."""
        for block in self.triple_blocks():
            for head, relation, tail in block.tolist():
                yield self.entities[head], self.relations[relation], self.entities[tail]

    def _repr_html_(self) -> str:
        first = "".join(
            f"<tr>{''.join(f'<td>{html_text(name)}</td>' for name in fact)}</tr>" for fact in islice(self, 10)
        )
        more = f"<p>… and {self.num_triples - 10:,} more facts</p>" if self.num_triples > 10 else ""
        return (
            f"<p><b>KnowledgeGraph</b>: {self.num_triples:,} facts about {self.num_entities:,} entities in "
            f"{self.num_relations:,} relations</p><table><thead><tr><th>head</th><th>relation</th><th>tail</th></tr>"
            f"</thead><tbody>{first}</tbody></table>{more}"
        )

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({self.num_entities} entities, {self.num_relations} relations, {self.num_triples} triples)"
        )


def _distinct(ids: NDArray[np.int64], limits: tuple[int, int, int]) -> NDArray[np.int64]:
    """The triples in their first order, each once."""
    query = ids[:, 0] * limits[1] + ids[:, 1]
    first = first_of_each(query, ids[:, 2], limits[0] * limits[1], limits[2])
    return ids if len(first) == len(ids) else ids[first]
