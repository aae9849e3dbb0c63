"""`gamma complete`: the most probable missing facts of a whole graph."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gamma_kg.cli.predict import LocalOption, MemoryOption, ModelOption, RulesOption
from gamma_kg.cli.progress import progress_bar
from gamma_kg.cli.reading import GraphArgument, Reading, reads_graph
from gamma_kg.cli.saying import say
from gamma_kg.errors import ConfigError
from gamma_kg.io.shown import shown

if TYPE_CHECKING:
    from gamma_kg.complete import Fact

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}
SHOWN = 20


@reads_graph
def complete(
    graph: GraphArgument,
    reading: Reading,
    out: Annotated[Path | None, typer.Option(help="File for the facts: .tsv .csv .jsonl .parquet .nt or .ttl.")] = None,
    assert_: Annotated[
        bool, typer.Option("--assert", help="RDF: write the facts themselves too, not only statements about them.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object per fact on stdout.")] = False,
    relations: Annotated[
        list[str] | None, typer.Option("--relations", help="Only this relation; may be repeated.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many facts.")] = 100,
    min_probability: Annotated[float, typer.Option(help="Leave out what is less probable.")] = 0.0,
    budget: Annotated[
        str | None, typer.Option(help="Time to use, such as 90s, 10m or 2h; the same command goes on later.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option(help="First fit probabilities to this graph by hiding some of its facts.")
    ] = True,
    rules: RulesOption = True,
    model: ModelOption = None,
    memory: MemoryOption = None,
    local: LocalOption = "auto",
) -> None:
    """Propose the most probable missing facts of the whole graph. Can be stopped with Ctrl-C and taken up again."""
    from gamma_kg.complete import complete as complete_graph
    from gamma_kg.errors import DataError
    from gamma_kg.io.rows import check_ending, identified, write_json_lines, write_rows
    from gamma_kg.predicting.models import resolve_model
    from gamma_kg.predicting.switch import basis, local_triples

    seconds = None if budget is None else parse_budget(budget)
    if out is not None:
        check_ending(out, asserted=assert_)
    elif assert_:
        raise DataError("--assert is for files of RDF: give --out FILE (.nt or .ttl)")
    started = time.monotonic()
    kg = reading.graph(graph)
    gamma = resolve_model(model).scorer
    if calibrate:
        try:
            # A part of the budget: what this asks, the search can't ask any more.
            say(str(gamma.calibrate(kg, max_hidden=200, local=local)))
        except DataError as error:
            say(f"probabilities stay as they are: {error}")
    if seconds is not None:
        seconds -= time.monotonic() - started
        if seconds <= 0 and calibrate:  # each further run would end here too
            say("fitting probabilities took the whole --budget: give more, or --no-calibrate")
    journal = None if out is None else out.with_name(out.name + ".progress")
    with progress_bar("completing", "queries") as progress:
        found = complete_graph(
            gamma,
            kg,
            relations=relations,
            top=top,
            min_probability=min_probability,
            budget_seconds=seconds,
            journal=journal,
            rules=rules,
            progress=progress,
            memory=memory,
            local=local,
        )
    if out is not None:
        write_rows(out, (asdict(fact) for fact in found.facts), kg, asserted=assert_)
    elif json_:
        write_json_lines(sys.stdout, identified((asdict(fact) for fact in found.facts), kg))
    else:
        print_facts(found.facts[:SHOWN])
    asked = f"{found.queries_asked:,} of {found.queries_in_all:,} promising queries asked in {found.seconds:.0f} s"
    where = "" if out is None else f" in {out}"
    rest = "" if found.is_finished or out is None else "; the same command goes on from here"
    on = basis(local_triples(kg, local))
    say(f"{len(found.facts):,} facts{where}; {asked}, answered from {on}{rest}")


def parse_budget(text: str) -> float:
    """Seconds meant by "90s", "10m", "2h" or a plain number."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text.lower())
    if match is None or float(match[1]) == 0:
        raise ConfigError(f"--budget: wanted a time such as 90s, 10m or 2h, got {text!r}")
    return float(match[1]) * UNIT_SECONDS[match[2] or "s"]


def print_facts(facts: list[Fact]) -> None:
    """A table for people."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Most probable missing facts", title_justify="left")
    for name in ("", "head", "relation", "tail", "probability"):
        table.add_column(name, justify="right" if name in ("", "probability") else "left")
    for rank, fact in enumerate(facts, 1):
        names = (escape(shown(name)) for name in (fact.head, fact.relation, fact.tail))
        table.add_row(str(rank), *names, f"{fact.probability:.1%}")
    Console().print(table if facts else "No missing facts found.")
