"""`gamma predict`: complete one fact, or each of a file of queries."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gamma_kg.cli.fitting import fit
from gamma_kg.cli.options import (
    DeviceOption,
    LocalOption,
    MemoryOption,
    ModelOption,
    RayOption,
    RulesOption,
    WorkersOption,
)
from gamma_kg.cli.progress_bar import progress_bar
from gamma_kg.cli.reading import GraphArgument, Reading, reads_graph
from gamma_kg.cli.saying import say
from gamma_kg.io.shown import shown

if TYPE_CHECKING:
    from gamma_kg import Prediction
    from gamma_kg.predicting.prediction import Query


@reads_graph
def predict(
    graph: GraphArgument,
    reading: Reading,
    head: Annotated[str | None, typer.Option("--head", "-h", help="Name of the head entity.")] = None,
    relation: Annotated[str | None, typer.Option("--relation", "-r", help="Name of the relation.")] = None,
    tail: Annotated[str | None, typer.Option("--tail", "-t", help="Name of the tail entity.")] = None,
    top_k: Annotated[int, typer.Option("--top", "--top-k", "-k", help="How many answers to show.")] = 10,
    model: ModelOption = None,
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Also rank facts the graph already holds.")
    ] = False,
    json_lines: Annotated[
        bool, typer.Option("--json", help="One JSON object per answer, nothing else on stdout.")
    ] = False,
    queries: Annotated[
        str | None, typer.Option(help="A file of queries: head, relation, tail with one of them empty or ?.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the answers to .tsv .csv .jsonl .parquet .nt or .ttl, not to stdout."),
    ] = None,
    assert_: Annotated[
        bool, typer.Option("--assert", help="RDF: write the facts themselves too, not only statements about them.")
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Fit probabilities to this graph by hiding some of its facts, once: they are kept and used from then "
            "on. A probability is how often such a proposal was one of the hidden facts, else the share of the scores.",
        ),
    ] = False,
    rules: RulesOption = True,
    memory: MemoryOption = None,
    device: DeviceOption = "cpu",
    local: LocalOption = "auto",
    ray: RayOption = None,
    workers: WorkersOption = None,
) -> None:
    """Give two of --head, --relation and --tail; the third is predicted and ranked. Or give a file of --queries."""
    from gamma_kg.errors import DataError
    from gamma_kg.io.output import check_file
    from gamma_kg.io.rows import check_ending, identified, write_json_lines, write_tsv
    from gamma_kg.predicting.answer_options import AnswerOptions
    from gamma_kg.predicting.models import resolve_model
    from gamma_kg.predicting.query_files import answer_queries, answers_in_order, known_queries, read_queries
    from gamma_kg.predicting.switch import basis, basis_of_many

    asked: list[tuple[str, Query]] = []
    complaints: list[str] | None = [] if reading.skip_bad_lines else None
    if queries is not None:
        if not (head is None and relation is None and tail is None):
            raise DataError("give either --queries or --head, --relation, --tail, not both")
        asked = read_queries(queries, complaints=complaints)
    if ray is not None:
        if queries is None or out is None or assert_:
            raise DataError("--ray answers a file of --queries into a folder of Parquet files: --out FOLDER")
        if device != "cpu":
            raise DataError(f"--ray computes on CPUs, a core for each worker: leave out --device {device}")
    elif out is not None:
        check_ending(out, asserted=assert_)
        check_file(out, (graph, queries, model))
    elif assert_:
        raise DataError("--assert is for files of RDF: give --out FILE (.nt or .ttl)")
    how = AnswerOptions(top_k=top_k, include_known=include_known, rules=rules, memory=memory, local=local)
    kg = reading.graph(graph)
    if queries is not None:
        asked = known_queries(kg, asked, complaints)
    for complaint in complaints or ():
        say(f"skipped: {complaint}")
    gamma = resolve_model(model, device).predictor
    if calibrate and gamma.calibration(kg, local, rules) is None:
        fit(gamma, kg, local, rules, None)
    if ray is not None and out is not None:
        from gamma_kg.cli.on_ray import predict_queries

        predict_queries(graph, kg, model, gamma, [query for _, query in asked], out, ray, workers, how)
        return
    if out is not None:
        asked = asked or [("the query", (head, relation, tail))]
        with progress_bar("predicting", "queries") as progress:
            count = answer_queries(gamma, kg, asked, out, how, progress=progress, asserted=assert_)
        say(f"{count:,} answers to {len(asked):,} queries in {out}, from {basis_of_many(kg, gamma.triples(kg, local))}")
        return
    if queries is not None:
        rows = answers_in_order(gamma, kg, asked, how)
        (write_json_lines if json_lines else write_tsv)(sys.stdout, identified(rows, kg))
        return
    query = (head, relation, tail)
    predictions = gamma.predict(kg, head=head, relation=relation, tail=tail, how=how)
    if json_lines:
        for prediction in predictions:
            print(json.dumps(asdict(prediction), ensure_ascii=False))
    else:
        title = f"({', '.join(part or '?' for part in query)})"
        first = predictions[0] if predictions else None
        near = f", from {basis(first.local, first.is_sampled)}" if first and first.local else ""
        size = f"{kg.num_triples:,} facts about {kg.num_entities:,} entities"
        print_predictions(predictions, f"{title} on {size}{near}")


def print_predictions(predictions: list[Prediction], title: str) -> None:
    """A table for people: rank, answer, how probable, which branch counted most."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    title = shown(title)
    table = Table(title=escape(title), title_justify="left")
    table.add_column("", justify="right")
    table.add_column("answer", overflow="fold")  # names are wrapped, never cut
    table.add_column("probability", justify="right")
    table.add_column("score", justify="right")
    branches = list(predictions[0].branch_weights) if predictions else []
    if len(branches) > 1:
        table.add_column("branch")
    if any(p.known for p in predictions):
        table.add_column("known")
    for rank, p in enumerate(predictions, 1):
        cells = [str(rank), escape(shown(p.name)), f"{p.probability:.1%}", f"{p.score:.2f}"]
        if len(branches) > 1:
            name, weight = max(p.branch_weights.items(), key=lambda branch: branch[1])
            cells.append(f"{name} {weight:.0%}")
        if any(q.known for q in predictions):
            cells.append("yes" if p.known else "")
        table.add_row(*cells)
    against = next((p.why_not for p in predictions if p.why_not), None)
    if against is not None:
        table.caption = f"Against any of these: {escape(against)}"
        table.caption_justify = "left"
    Console().print(table if predictions else f"{escape(title)}: nothing left to predict, every candidate is known.")
