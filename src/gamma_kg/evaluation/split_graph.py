"""The graph that a split lets a model see."""

from __future__ import annotations

from gamma_kg.data.benchmark import Split
from gamma_kg.graph.graph import KnowledgeGraph


def graph_of(split: Split) -> KnowledgeGraph:
    """The seen facts of a split, as benchmarks count them (repeated lines stay)."""
    return KnowledgeGraph(split.graph, split.entities, split.relations, keep_duplicates=True)
