"""`gamma mcp`: graphs as tools for an assistant."""

from __future__ import annotations

from typing import Annotated

import typer

from gamma_kg.cli.options import DeviceOption, LocalOption, MemoryOption, ModelOption, RulesOption
from gamma_kg.cli.reading import Reading, reads_graph
from gamma_kg.cli.saying import say
from gamma_kg.cli.serve import GraphsArgument


@reads_graph
def mcp(
    graph: GraphsArgument,
    reading: Reading,
    model: ModelOption = None,
    http: Annotated[bool, typer.Option("--http", help="Speak HTTP on loopback instead of standard input.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port for --http.")] = 8766,
    memory: MemoryOption = None,
    device: DeviceOption = "cpu",
    local: LocalOption = "auto",
    rules: RulesOption = True,
) -> None:
    """Let an assistant find entities, predict, explain and list missing facts, over the Model Context Protocol."""
    from gamma_kg.cli.extras import needed
    from gamma_kg.cli.graph_names import title_of
    from gamma_kg.predicting.answer_options import AnswerOptions
    from gamma_kg.predicting.models import resolve_model

    with needed("mcp"):
        from gamma_kg.serve.assistant import create_server
    from gamma_kg.serve.hosted import HostedGraphs
    from gamma_kg.serve.limits import Limits
    from gamma_kg.serve.service import Service

    named = resolve_model(model, device)
    graphs = HostedGraphs()
    for name in graph:
        graphs.add(title_of(name), reading.graph(name)).prepare()
    how = AnswerOptions(rules=rules, memory=memory, local=local)
    service = Service(named, graphs, Limits.parse({"seconds": 120}, "gamma mcp"), how)
    server = create_server(service)
    try:
        if http:
            say(f"http://127.0.0.1:{port}/mcp offers {', '.join(held.title for held in graphs)}; Ctrl-C ends")
            server.run("streamable-http", port=port)
        else:
            server.run("stdio")
    finally:
        service.close()
