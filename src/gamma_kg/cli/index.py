"""`gamma index`: a graph of any size as a store on disk, which every command opens at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.graph_names import as_files
from gamma_kg.cli.options import MemoryOption
from gamma_kg.cli.reading import Reading, reads_graph
from gamma_kg.cli.saying import say


@reads_graph
def index(
    files: Annotated[
        list[str],
        typer.Argument(help="Files or folders of facts, stores, `-`, `sparql:URL` or demo; with --verify stores."),
    ],
    reading: Reading,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The store to make: a folder G.gamma.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Add to the store, whose ids stay as they are.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Make the store anew if there is one.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read stores whole and compare them with their hashes.")] = (
        False
    ),
    memory: MemoryOption = None,
) -> None:
    """Turn files of facts, also larger than memory, into a store. Can be stopped and taken up again."""
    from gamma_kg.errors import ConfigError
    from gamma_kg.graph.store.facts import verify_store
    from gamma_kg.graph.store.index import index_files
    from gamma_kg.graph.store.layout import Header

    def sizes(header: Header) -> str:
        return f"{header.num_triples:,} facts, {header.num_entities:,} entities, {header.num_relations:,} relations"

    if verify:
        for path in files:
            say(f"{path} is sound: {sizes(verify_store(path))}")
        return
    if out is None:
        raise ConfigError("name the store to make: --out G.gamma")
    if append and replace:
        raise ConfigError("give --append or --replace, not both")
    with as_files(files) as named:
        made = index_files(named, out, append=append, replace=replace, memory=memory, tell=say, **reading.options())
    report = made.report
    if report is not None and report.left_out:
        say(str(report))
    for note in report.notes if report is not None else ():
        say(note)
    say(f"{out}: {sizes(made.header)}")
