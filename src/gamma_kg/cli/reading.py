"""Options that every command with a graph shares: which columns, which format, what to do with literals and damage."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gamma_kg import KnowledgeGraph

GraphArgument = Annotated[
    str,
    typer.Argument(help="A file or folder of facts, `-` (standard input), `sparql:URL`, or `demo`."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(help="Which columns hold head,relation,tail: names, or positions counted from 0."),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="tsv csv txt parquet jsonl nt nq ttl trig rdf jsonld n3; else by the file's ending."),
]
HeaderOption = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns; else looked at.")
]
LiteralsOption = Annotated[str, typer.Option(help="RDF literals: skip or as-entities.")]
SkipBadLinesOption = Annotated[
    bool, typer.Option("--skip-bad-lines", help="Leave out what can't be read and report how much.")
]
EncodingOption = Annotated[str, typer.Option(help="Encoding of text tables, such as latin-1.")]
LimitOption = Annotated[int | None, typer.Option(help="SPARQL: read at most so many triples.")]
TimeoutOption = Annotated[float, typer.Option(help="SPARQL: seconds to wait for one page.")]


def read_graph(name: str, *, columns: str | None, **options: Any) -> KnowledgeGraph:
    """Loads the graph and tells on stderr what was left out."""
    from gamma_kg.cli.graphs import load_graph

    kg = load_graph(name, columns=parse_columns(columns), **options)
    report = kg.report
    if report is not None and (report.literals_skipped or report.bad_lines):
        print(f"gamma: {report}", file=sys.stderr)
    # A first line whose relation never comes again is probably a header that was not recognised.
    if report is not None and report.notes and int((kg.triples[:, 1] == kg.triples[0, 1]).sum()) == 1:
        print(f"gamma: {report.notes[0]}", file=sys.stderr)
    return kg


def parse_columns(text: str | None) -> list[str | int] | None:
    """Columns from "subject,predicate,object" or "0,1,2"; a number is a position, names may be quoted as in CSV."""
    if text is None:
        return None
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return [int(cell) if cell.strip().isdecimal() else cell.strip() for cell in cells]
