"""The switch between answers from a neighbourhood and answers from the whole graph, the same for every command."""

from __future__ import annotations

from typing import Literal

from gamma_kg.errors import ConfigError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.nn.local_answers import WIDE_SHARE

Local = Literal["auto", "off"] | int | str  # a number, also as text, is a budget in triples

# docs/local.md has the measurements behind these. In a graph that is twice as dense an entity has twice the triples and
# twice as many others near it: so the budget goes with the square of the average degree.
TRIPLES_PER_SQUARE = 30
LEAST_TRIPLES, MOST_TRIPLES = 8_000, 22_000
# Beside it stands a near neighbourhood with a fact for so many of its own. In a graph of this average degree or more
# there is none: it would have too few entities.
FACTS_PER_NEAR_FACT, DENSE = 4, 15
# In such a dense graph a source that has itself more than this share of the facts of a neighbourhood gets so many times
# as many: its neighbours alone would fill the room, and its answers are further away than they.
CROWDED, ROOM = 1 / 40, 4
# A sparse graph with at most so many times the facts of a near neighbourhood is taken whole: nothing in it is far.
SMALL = 2
# A dense one is taken whole where a layer's work on it is at most this, in edges; an entity costs about as much as so
# many (src/csrc/graph.h).
CHEAP_WORK = 1_000_000
ENTITY_WORK = 90


def local_triples(kg: KnowledgeGraph, local: Local) -> int | None:
    """The budget that `local` means for this graph, in triples; None: answers come from the whole graph."""
    return triples_for(kg.num_entities, kg.num_triples, local)


def triples_for(num_entities: int, num_triples: int, local: Local, cheap_work: int | None = None) -> int | None:
    """The same by the counts of a graph.

    "auto" goes by nothing else, so that the same question has the same answer on every machine. It takes the whole of a
    small graph; with `cheap_work`, of any whose layers take at most so much.
    """
    if local == "off":
        return None
    if local == "auto":
        triples = budget_of(num_entities, num_triples)
        near = near_triples(num_entities, num_triples, triples)
        if near is not None and cheap_work is None:
            is_whole = num_triples <= SMALL * near
        else:
            work = 2 * num_triples + ENTITY_WORK * num_entities
            is_whole = work <= (CHEAP_WORK if cheap_work is None else cheap_work)
        return None if is_whole else triples
    try:
        triples = int(local)
    except ValueError:
        triples = 0
    if triples < 1:
        raise ConfigError(f"local: wanted auto, off or a number of triples, got {local!r}")
    return triples


def near_triples(num_entities: int, num_triples: int, triples: int) -> int | None:
    """The triples of the near neighbourhood beside one of at most `triples`; None: there is none in such a graph."""
    is_dense = _degree(num_entities, num_triples) >= DENSE
    return None if is_dense else max(triples // FACTS_PER_NEAR_FACT, 1)


def neighbourhood_sizes(kg: KnowledgeGraph, triples: int, facts_of_source: int = 0) -> list[int]:
    """The triples of the neighbourhoods that an answer from about `triples` is computed on: wide, then near."""
    near = near_triples(kg.num_entities, kg.num_triples, triples)
    if near is None:
        return [ROOM * triples if facts_of_source > CROWDED * triples else triples]
    return [triples, near]


def budget_of(num_entities: int, num_triples: int) -> int:
    """The triples of a neighbourhood in a graph of this density."""
    wanted = int(TRIPLES_PER_SQUARE * _degree(num_entities, num_triples) ** 2)
    return min(max(wanted, LEAST_TRIPLES), MOST_TRIPLES)


def _degree(num_entities: int, num_triples: int) -> float:
    """Edges of an entity, on average."""
    return 2 * num_triples / max(num_entities, 1)


def what_auto_means() -> list[float]:
    """All that decides it: results of another meaning are not the same."""
    size = [TRIPLES_PER_SQUARE, LEAST_TRIPLES, MOST_TRIPLES, FACTS_PER_NEAR_FACT, WIDE_SHARE]
    return [*size, DENSE, SMALL, CHEAP_WORK, ENTITY_WORK, CROWDED, ROOM]


def said(triples: int | None) -> Local:
    """The switch that means this budget on every graph."""
    return "off" if triples is None else triples


def basis(local: int | None, is_sampled: bool = False) -> str:
    """What answers were computed on, for people."""
    if local is None:
        return "the whole graph"
    sampled = "; others scored by a sample" if is_sampled else ""
    return f"a neighbourhood of up to {local:,} facts{sampled}"


def basis_of_many(kg: KnowledgeGraph, local: int | None) -> str:
    """The same for answers to many queries on one graph."""
    if local is None:
        return basis(None)
    usual, around_hubs = (neighbourhood_sizes(kg, local, facts)[0] for facts in (0, kg.num_triples))
    return f"neighbourhoods of up to {usual:,} facts" + (f" ({around_hubs:,} around hubs)" * (around_hubs > usual))
