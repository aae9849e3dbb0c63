"""The switch between answers from a neighbourhood and answers from the whole graph, the same for every command."""

from __future__ import annotations

from typing import Literal

from gamma_kg.errors import ConfigError
from gamma_kg.graph.graph import KnowledgeGraph

Local = Literal["auto", "off"] | int | str  # a number, also as text, is a budget in triples

# docs/local.md has the measurements behind these. In a graph that is twice as dense an entity has twice the triples and
# twice as many others near it: so the budget goes with the square of the average degree.
TRIPLES_PER_SQUARE = 20
LEAST_TRIPLES, MOST_TRIPLES = 8_000, 22_000
# A layer's work on the whole graph, in edges; an entity costs about as much as so many edges (src/csrc/graph.h).
CHEAP_WORK = 1_000_000
ENTITY_WORK = 90


def local_triples(kg: KnowledgeGraph, local: Local) -> int | None:
    """The budget that `local` means for this graph, in triples; None: answers come from the whole graph."""
    return triples_for(kg.num_entities, kg.num_triples, local)


def triples_for(num_entities: int, num_triples: int, local: Local, cheap_work: int | None = None) -> int | None:
    """The same by the counts of a graph.

    "auto" goes by nothing else (`cheap_work` is CHEAP_WORK if left out), so that the same question has the same answer
    on every machine.
    """
    if local == "off":
        return None
    if local == "auto":
        work = 2 * num_triples + ENTITY_WORK * num_entities
        is_cheap = work <= (CHEAP_WORK if cheap_work is None else cheap_work)
        return None if is_cheap else budget_of(num_entities, num_triples)
    try:
        triples = int(local)
    except ValueError:
        triples = 0
    if triples < 1:
        raise ConfigError(f"local: wanted auto, off or a number of triples, got {local!r}")
    return triples


def budget_of(num_entities: int, num_triples: int) -> int:
    """The triples of a neighbourhood in a graph of this density."""
    degree = 2 * num_triples / max(num_entities, 1)
    wanted = int(TRIPLES_PER_SQUARE * degree**2)
    return min(max(wanted, LEAST_TRIPLES), MOST_TRIPLES)


def what_auto_means() -> list[int]:
    """All that decides it: results of another meaning are not the same."""
    return [TRIPLES_PER_SQUARE, LEAST_TRIPLES, MOST_TRIPLES, CHEAP_WORK, ENTITY_WORK]


def said(triples: int | None) -> Local:
    """The switch that means this budget on every graph."""
    return "off" if triples is None else triples


def basis(local: int | None, is_sampled: bool = False) -> str:
    """What answers were computed on, for people."""
    if local is None:
        return "the whole graph"
    sampled = "; others scored by a sample" if is_sampled else ""
    return f"a neighbourhood of up to {local:,} facts{sampled}"
