"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Weights by name (`gamma-3`) or file, `untrained`, `ppr`, `frequency`; else the bundled ones.",
    ),
]
# Where a baseline can't take part.
OwnModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="Weights: a name such as `gamma-3`, or a file; or `untrained`."),
]
MemoryOption = Annotated[
    str | None, typer.Option(help="Memory to use, such as 2GB; a quarter of what is free if left out.")
]
RulesOption = Annotated[
    bool,
    typer.Option("--rules/--no-rules", help="Leave out what contradicts the patterns of the graph's own facts."),
]
DeviceOption = Annotated[
    str, typer.Option("--device", help="What computes: cpu, cuda (a GPU), or auto (a GPU where there is one).")
]
RayOption = Annotated[
    str | None, typer.Option("--ray", help="Work on Ray: `local`, or the address of a cluster that runs.")
]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="How many Ray workers; one a core if left out.")]
LocalOption = Annotated[
    str,
    typer.Option(
        "--local", help="Answer from the neighbourhood of the source: auto (on large graphs), off, or its triples."
    ),
]
