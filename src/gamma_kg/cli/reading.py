"""Options that every command with a graph shares: which columns, which format, what to do with literals and damage."""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamma_kg.cli.saying import be_quiet, is_quiet, say, say_for_now, unsay

if TYPE_CHECKING:
    from gamma_kg import KnowledgeGraph

GraphArgument = Annotated[
    str,
    typer.Argument(help="A file or folder of facts, `-` (standard input), `sparql:URL`, `neo4j://…`, or `demo`."),
]


@dataclass(frozen=True)
class Reading:
    """How to read a graph; each field is an option of every command that is marked with `reads_graph`."""

    columns: Annotated[
        str | None, typer.Option(help="Which columns hold head,relation,tail: names, or positions counted from 0.")
    ] = None
    format: Annotated[
        str | None,
        typer.Option(help="tsv csv txt parquet jsonl nt nq ttl trig rdf jsonld n3; else by the file's ending."),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line names the columns; else looked at."),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(help="A table with one row per thing: the column that names it; each other one is a relation."),
    ] = None
    edge_relation: Annotated[
        str | None, typer.Option(help="A table of two columns (head, tail): the name of their relation.")
    ] = None
    null_values: Annotated[
        str | None, typer.Option(help="Cells that mean nothing, such as NULL,nan,None; empty ones are among them then.")
    ] = None
    label_property: Annotated[
        list[str] | None, typer.Option(help="Take labels from this property first (RDF, Neo4j); may be repeated.")
    ] = None
    language: Annotated[str, typer.Option(help="RDF: languages of labels, best first, such as de,en.")] = "en"
    literals: Annotated[str, typer.Option(help="RDF literals: skip or as-entities.")] = "skip"
    ontology: Annotated[
        str, typer.Option(help="auto: OWL class expressions become relations, plumbing stays out; off: as it stands.")
    ] = "auto"
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Leave out what can't be read and report how much.")
    ] = False
    encoding: Annotated[str, typer.Option(help="Encoding of text tables, such as latin-1.")] = "utf-8"
    limit: Annotated[int | None, typer.Option(help="Databases: read at most so many triples.")] = None
    timeout: Annotated[float, typer.Option(help="Databases: seconds to wait for one page.")] = 60.0
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr.")] = False

    def options(self) -> dict[str, Any]:
        """The options of `read_triples`."""
        options = asdict(self)
        del options["quiet"]
        options["columns"] = parse_columns(self.columns)
        options["id_column"] = next(iter(parse_columns(self.id_column) or ()), None)
        options["null_values"] = parse_words(self.null_values)
        options["label_properties"] = options.pop("label_property") or ()
        options["languages"] = parse_words(options.pop("language"))
        return options

    def graph(self, name: str) -> KnowledgeGraph:
        """Loads the graph and tells on stderr what was left out."""
        from gamma_kg.cli.graph_names import load_graph

        kg = load_graph(name, **self.options())
        unsay()
        report = kg.report
        if report is None:
            return kg
        if report.left_out:
            say(str(report))
        for note in report.notes:
            say(note)
        # A first line whose relation never comes again is probably a header that was not recognised.
        if report.doubts and int((kg.triples[:, 1] == kg.triples[0, 1]).sum()) == 1:
            say(report.doubts[0])
        return kg


def reads_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of `Reading` in place of its parameter `reading`; typer goes by the signature."""
    signature = inspect.signature(command, eval_str=True)
    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for option in inspect.signature(Reading, eval_str=True).parameters.values()
    ]
    own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]

    @wraps(command)
    def run(**given: Any) -> None:
        reading = Reading(**{option.name: given.pop(option.name) for option in options})
        be_quiet(reading.quiet or is_quiet())
        if isinstance(graph := given.get("graph"), str):
            say_for_now(f"reading {graph}")
        try:
            command(reading=reading, **given)
        finally:
            unsay()

    run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *options)}
    return run


def parse_columns(text: str | None) -> list[str | int] | None:
    """Columns from "subject,predicate,object" or "0,1,2"; a number is a position, names may be quoted as in CSV."""
    if text is None:
        return None
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return [int(cell) if cell.strip().isdecimal() else cell.strip() for cell in cells]


def parse_words(text: str | None) -> list[str]:
    """Words from "NULL,nan", quoted as in CSV where they hold a comma."""
    return [] if text is None else next(csv.reader([text], skipinitialspace=True), [])
