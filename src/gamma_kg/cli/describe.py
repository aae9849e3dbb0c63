"""`gamma describe`: what is in a graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from gamma_kg.cli.options import ModelOption
from gamma_kg.cli.reading import GraphArgument, Reading, reads_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from gamma_kg import KnowledgeGraph


@reads_graph
def describe(
    graph: GraphArgument,
    reading: Reading,
    search: Annotated[
        str | None, typer.Option(help="Also list names of entities and relations with this word in them.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="JSON on stdout, with every relation.")] = False,
    time_: Annotated[
        bool, typer.Option("--time/--no-time", help="Ask the model two queries to tell how long one takes.")
    ] = True,
    model: ModelOption = None,
) -> None:
    """Counts, relations with an example and what their facts are like, types, components, degrees, time of a query."""
    from gamma_kg.graph.describe import MAX_SORTED
    from gamma_kg.graph.describe import describe as describe_graph
    from gamma_kg.rules import rules_of

    kg = reading.graph(graph)
    ask = _asking(kg, model) if time_ else None
    patterns = rules_of(kg).describe if kg.num_triples <= MAX_SORTED else None
    found = describe_graph(kg, search=search, patterns=patterns, ask=ask)
    print(json.dumps(found.to_dict(), ensure_ascii=False) if json_ else found)


def _asking(kg: KnowledgeGraph, model: str | None) -> Callable[[int, int], str]:
    from gamma_kg.predicting.models import resolve_model

    predictor = resolve_model(model).predictor

    def ask(head: int, relation: int) -> str:
        predictor.predict(kg, head=kg.entities[head], relation=kg.relations[relation], top_k=1)
        return ""

    return ask
