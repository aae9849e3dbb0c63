"""`gamma predict`: complete one fact."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gamma_kg import Prediction

ModelOption = Annotated[
    Path | None, typer.Option("--model", "-m", help="A checkpoint file; the bundled weights if left out.")
]
MemoryOption = Annotated[
    str | None, typer.Option(help="Memory to use, such as 2GB; a quarter of what is free if left out.")
]


def predict(
    graph: Annotated[str, typer.Argument(help="A file of facts (head, relation, tail), or `demo`.")],
    head: Annotated[str | None, typer.Option("--head", "-h", help="Name of the head entity.")] = None,
    relation: Annotated[str | None, typer.Option("--relation", "-r", help="Name of the relation.")] = None,
    tail: Annotated[str | None, typer.Option("--tail", "-t", help="Name of the tail entity.")] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="How many answers to show.")] = 10,
    model: ModelOption = None,
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Also rank facts the graph already holds.")
    ] = False,
    json_lines: Annotated[
        bool, typer.Option("--json", help="One JSON object per answer, nothing else on stdout.")
    ] = False,
    columns: Annotated[
        str | None, typer.Option(help="Which columns hold head,relation,tail: names or positions.")
    ] = None,
    memory: MemoryOption = None,
) -> None:
    """Give two of --head, --relation and --tail; the third is predicted and ranked."""
    from gamma_kg import Gamma
    from gamma_kg.cli.graphs import load_graph

    kg = load_graph(graph, columns=columns.split(",") if columns else None)
    predictions = Gamma.from_pretrained(model).predict(
        kg, head=head, relation=relation, tail=tail, top_k=top_k, include_known=include_known, memory=memory
    )
    if json_lines:
        for prediction in predictions:
            print(json.dumps(asdict(prediction), ensure_ascii=False))
    else:
        asked = f"({head or '?'}, {relation or '?'}, {tail or '?'})"
        print_predictions(predictions, f"{asked} on {kg.num_triples:,} facts about {kg.num_entities:,} entities")


def print_predictions(predictions: list[Prediction], title: str) -> None:
    """A table for people: rank, answer, how probable, which geometry counted."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    table.add_column("", justify="right")
    table.add_column("answer")
    table.add_column("probability", justify="right")
    table.add_column("score", justify="right")
    branches = list(predictions[0].branch_weights) if predictions else []
    if len(branches) > 1:
        table.add_column("geometry")
    if any(p.known for p in predictions):
        table.add_column("known")
    for rank, p in enumerate(predictions, 1):
        cells = [str(rank), escape(p.name), f"{p.probability:.1%}", f"{p.score:.2f}"]
        if len(branches) > 1:
            cells.append(", ".join(f"{name} {weight:.0%}" for name, weight in p.branch_weights.items()))
        if any(q.known for q in predictions):
            cells.append("yes" if p.known else "")
        table.add_row(*cells)
    Console().print(table if predictions else f"{escape(title)}: nothing left to predict, every candidate is known.")
