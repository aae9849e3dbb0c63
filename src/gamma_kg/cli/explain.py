"""`gamma explain`: why the model believes a fact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gamma_kg.cli.options import DeviceOption, LocalOption, MemoryOption, OwnModelOption, RulesOption
from gamma_kg.cli.reading import GraphArgument, Reading, reads_graph
from gamma_kg.cli.saying import say
from gamma_kg.errors import DataError, did_you_mean
from gamma_kg.io.shown import shown_lines

ENDINGS = (".svg", ".html", ".json", ".txt")


@reads_graph
def explain(
    graph: GraphArgument,
    reading: Reading,
    head: Annotated[str, typer.Option("--head", "-h", help="Name of the head entity.")],
    relation: Annotated[str, typer.Option("--relation", "-r", help="Name of the relation.")],
    tail: Annotated[str, typer.Option("--tail", "-t", help="Name of the tail entity.")],
    out: Annotated[Path | None, typer.Option(help="A picture (.svg, .html) or a file (.json, .txt).")] = None,
    paths: Annotated[int, typer.Option(help="How many paths.")] = 5,
    facts: Annotated[int, typer.Option(help="How many single facts.")] = 5,
    json_: Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")] = False,
    rules: RulesOption = True,
    model: OwnModelOption = None,
    memory: MemoryOption = None,
    device: DeviceOption = "cpu",
    local: LocalOption = "auto",
) -> None:
    """Show the paths from head to tail that speak for a fact, and which facts it rests on."""
    from gamma_kg import Gamma
    from gamma_kg.io.atomic import write_text
    from gamma_kg.io.output import check_file
    from gamma_kg.predicting.models import resolve_model

    if out is not None and out.suffix not in ENDINGS:
        hint = did_you_mean(out.suffix, ENDINGS) or f": choose from {' '.join(ENDINGS)}"
        raise DataError(f"{out}: an explanation can't be written as {out.suffix or 'a file without ending'!r}{hint}")
    if out is not None:
        check_file(out, (graph, model))
    gamma = resolve_model(model, device).predictor
    if not isinstance(gamma, Gamma):
        raise DataError(f"--model {model}: a baseline has no paths to explain; give a checkpoint, or leave it out")
    kg = reading.graph(graph)
    options: dict[str, Any] = {"num_paths": paths, "num_facts": facts, "rules": rules, "memory": memory, "local": local}
    found = gamma.explain(kg, head=head, relation=relation, tail=tail, **options)
    if out is None:
        print(found.json() if json_ else shown_lines(found.text()))
        return
    content = {".svg": found.svg, ".html": found.html, ".json": found.json, ".txt": found.text}[out.suffix]()
    write_text(out, content + "\n")
    say(f"explanation in {out}")
