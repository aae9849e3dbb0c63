"""Graphs to train on, from names or files, and where everything came from."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gamma_kg.data.benchmark import file_sha256, load_benchmark
from gamma_kg.data.catalog import catalog
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.sampling import RuleWorlds, TrainingGraph
from gamma_kg.graph.store.layout import is_store
from gamma_kg.machine.cpu import cpu_name


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


def provenance(graphs: Sequence[NamedGraph]) -> dict[str, Any]:
    """What a checkpoint's header says of its making: data, code, machine."""
    return {
        "data": {s.graph.name: {"triples": s.graph.num_triples, "sha256": s.sha256} for s in graphs},
        "commit": _commit(),
        "torch": torch.__version__,
        "hardware": f"{_processor()}, {torch.get_num_threads()} threads",
    }


def _commit() -> str:
    """The commit of the source tree, '' for an installed package."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _processor() -> str:
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else cpu_name()
