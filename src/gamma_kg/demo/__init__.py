"""The bundled demo graph: facts about the world's countries, and true facts held out of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from gamma_kg.data.benchmark import Split, read_parts
from gamma_kg.graph.graph import KnowledgeGraph


def demo_file() -> AbstractContextManager[Path]:
    """The file of the facts, without those held out."""
    return as_file(files("gamma_kg") / "demo" / "facts.tsv")


def demo_graph() -> KnowledgeGraph:
    """The facts, without those held out."""
    with demo_file() as path:
        return KnowledgeGraph.from_file(path)


def demo_split() -> Split:
    """The facts as the graph, the held-out facts as what is asked for."""
    with as_file(files("gamma_kg") / "demo") as folder:
        triples, entities, relations = read_parts({name: folder / f"{name}.tsv" for name in ("facts", "held_out")})
    known = np.concatenate((triples["facts"], triples["held_out"]))
    return Split(triples["facts"], triples["held_out"], known, entities, relations)
