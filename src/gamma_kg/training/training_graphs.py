"""Graphs to train on, from names or files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gamma_kg.data.benchmark import file_sha256, load_benchmark
from gamma_kg.data.catalog import catalog
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.sampling import RuleWorlds, TrainingGraph
from gamma_kg.graph.store.layout import is_store


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """A training graph and the sha256 of what it was read from."""

    graph: TrainingGraph | RuleWorlds
    sha256: str


def load_graph(name: str, data_dir: str | Path | None = None) -> NamedGraph:
    """The train triples of a benchmark (a name or a folder), all triples of a file, or rule "worlds"."""
    if name == RuleWorlds.name:
        return NamedGraph(RuleWorlds(), "")
    path = Path(name).expanduser()
    if is_graph_file(name):
        kg = KnowledgeGraph.from_file(path)
        graph = TrainingGraph.build(path.name, kg.triples.numpy(), kg.num_entities, kg.num_relations)
        return NamedGraph(graph, hash_of(path, kg))
    benchmark = load_benchmark(name, data_dir)
    split = benchmark.split("train")
    graph = TrainingGraph.build(benchmark.name, split.graph, split.num_entities, split.num_relations)
    return NamedGraph(graph, benchmark.data_hash("train"))


def is_graph_file(name: str) -> bool:
    """Whether a name means a file of triples or a store, not a benchmark."""
    path = Path(name).expanduser()
    return name.casefold() not in catalog() and (path.is_file() or (path.is_dir() and is_store(path)))


def hash_of(path: Path, kg: KnowledgeGraph) -> str:
    """What tells the graph from others: the hash of its file, or of the facts in a store."""
    return file_sha256(path) if path.is_file() else kg.fingerprint()


def load_graphs(names: Iterable[str], data_dir: str | Path | None = None) -> list[NamedGraph]:
    return [load_graph(name, data_dir) for name in names]
