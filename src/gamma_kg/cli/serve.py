"""`gamma serve`: a page and a REST interface over graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.options import DeviceOption, LocalOption, MemoryOption, ModelOption, RulesOption
from gamma_kg.cli.reading import Reading, reads_graph
from gamma_kg.cli.saying import say

GraphsArgument = Annotated[
    list[str], typer.Argument(metavar="GRAPH…", help="Files or folders of facts, `sparql:URL`, or `demo`.")
]


@reads_graph
def serve(
    graph: GraphsArgument,
    reading: Reading,
    model: ModelOption = None,
    host: Annotated[str, typer.Option(help="Address to listen at; others than loopback want a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes a free one.")] = 8765,
    token: Annotated[
        str | None, typer.Option(envvar="GAMMA_TOKEN", help="What callers must show; better set as GAMMA_TOKEN.")
    ] = None,
    reviews: Annotated[
        Path | None, typer.Option(help="Folder in which accepted and rejected facts outlive the server.")
    ] = None,
    queue: Annotated[int, typer.Option(help="Questions that may wait; the next gets 429.")] = 256,
    seconds: Annotated[float, typer.Option(help="Time that a request may take.")] = 30.0,
    body: Annotated[str, typer.Option(help="Largest body of a request.")] = "1MB",
    upload: Annotated[str, typer.Option(help="Largest graph that may be uploaded.")] = "64MB",
    results: Annotated[int, typer.Option(help="Most answers of a question, and facts of a job.")] = 1000,
    batch: Annotated[int, typer.Option(help="Questions answered together; 1 switches batching off.")] = 16,
    grace: Annotated[float, typer.Option(help="Seconds that a running job may go on after SIGTERM.")] = 30.0,
    memory: MemoryOption = None,
    device: DeviceOption = "cpu",
    local: LocalOption = "auto",
    rules: RulesOption = True,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Show graphs as pages in a browser: search, ask, see why, find missing facts; and as a REST interface."""
    from gamma_kg.cli.extras import needed
    from gamma_kg.cli.graph_names import title_of
    from gamma_kg.errors import ConfigError
    from gamma_kg.machine.memory import parse_memory
    from gamma_kg.predicting.answer_options import AnswerOptions
    from gamma_kg.predicting.models import resolve_model

    with needed("serve"):
        from gamma_kg.serve.app import create_app
        from gamma_kg.serve.observing import set_up_log
        from gamma_kg.serve.run import listen, run
        from gamma_kg.serve.security import check_binding
    from gamma_kg.serve.hosted import HostedGraphs
    from gamma_kg.serve.limits import Limits
    from gamma_kg.serve.service import Service

    check_binding(host, token)
    if log_level not in ("debug", "info", "warning", "error"):
        raise ConfigError(f"--log-level: wanted debug, info, warning or error, got {log_level!r}")
    limits = Limits.parse(
        {
            "queue": queue, "seconds": seconds, "body_bytes": parse_memory(body), "upload_bytes": parse_memory(upload),
            "results": results, "batch": batch, "grace_seconds": grace
        },
        "gamma serve",
    )  # fmt: skip
    named = resolve_model(model, device)
    listener = listen(host, port)
    graphs = HostedGraphs(reviews)
    for name in graph:
        graphs.add(title_of(name), reading.graph(name)).prepare()
    how = AnswerOptions(rules=rules, memory=memory, local=local)
    service = Service(named, graphs, limits, how)
    set_up_log(log_level)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
    say(f"{address} shows {', '.join(held.title for held in graphs)}; Ctrl-C ends")
    run(create_app(service, host=host, token=token), service, listener)
