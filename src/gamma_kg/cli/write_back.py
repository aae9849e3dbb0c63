"""`gamma write-back`: accepted facts to the database that the graph came from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.saying import say

SHOWN = 10


def write_back(
    facts: Annotated[Path, typer.Argument(help="Facts as `complete` writes them: .tsv .csv .jsonl .parquet.")],
    database: Annotated[str, typer.Argument(help="`sparql:URL` of the update address, or `neo4j://…`.")],
    write: Annotated[bool, typer.Option("--write", help="Write them. Without it they are only shown.")] = False,
    graph: Annotated[str | None, typer.Option(help="SPARQL: the IRI of the named graph to write to.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for one request.")] = 60.0,
) -> None:
    """Write accepted facts back. A column `accepted` chooses rows; nothing is written without --write."""
    from gamma_kg.data.accepted import read_accepted
    from gamma_kg.data.write_back import write_back as write_facts
    from gamma_kg.io.shown import shown

    accepted = read_accepted(facts)
    if write:
        say(f"{write_facts(database, accepted, graph=graph, timeout=timeout):,} facts written")
        return
    for fact in accepted[:SHOWN]:
        print("\t".join(map(shown, (fact.head, fact.relation, fact.tail))))
    say(f"{len(accepted):,} facts would be written; nothing was: add --write")
