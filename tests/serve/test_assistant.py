"""An assistant's client of the official package talks to the server: in process, over standard input, over HTTP."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`: pip install -e .[mcp]")

from mcp import Client, StdioServerParameters, stdio_client

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.serve.assistant import create_server
from gamma_kg.serve.service import Service

TOOLS = {"find_entity", "predict", "ask", "explain", "missing_facts", "neighbours"}


def talk(service: Service, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """The results of tool calls, made one after the other."""

    async def run() -> list[Any]:
        async with Client(create_server(service)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(run)


def content(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


@pytest.fixture
def service(make_service: Callable[..., Service]) -> Service:
    return make_service(seconds=60)


def test_every_tool_is_listed_with_a_description_and_typed_arguments(service: Service) -> None:
    async def listed() -> Any:
        async with Client(create_server(service)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(listed)}
    assert set(tools) == TOOLS
    for tool in tools.values():
        assert len(tool.description or "") > 80 and tool.input_schema["properties"]
        names = {"head", "relation", "tail", "name", "text", "question", "graph"} & tool.input_schema[
            "properties"
        ].keys()
        assert all(tool.input_schema["properties"][name].get("description") for name in names)
    assert "exactly two" in (tools["predict"].description or "")
    assert tools["predict"].input_schema["properties"]["top_k"]["maximum"] == 50


def test_names_predictions_reasons_and_neighbours_come_back_small_and_in_names(
    service: Service, family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    of = {"graph": "family"}
    found, answers, why, near = talk(
        service,
        ("find_entity", {"text": "an", **of}),
        ("predict", {"head": "Eve", "relation": "mother of", "top_k": 2, **of}),
        ("explain", {"head": "Bob", "relation": "sibling of", "tail": "Cleo", **of}),
        ("neighbours", {"name": "Ann", **of}),
    )
    first = content(found)["entities"][0]
    assert (first["name"], first["degree"]) == ("Ann", 4) and first["types"]
    expected = small_gamma.predict(family, head="Eve", relation="mother of", top_k=2)
    assert [a["name"] for a in content(answers)["answers"]] == [p.name for p in expected]
    assert content(why)["rests_on"] and all("→" in p["path"] or "←" in p["path"] for p in content(why)["paths"])
    assert content(why)["in_short"].endswith(".") and any("sibling of" in rule for rule in content(why)["rules"])
    assert content(answers)["fitted"] is False
    assert {"relation": "mother of", "is_head": True, "count": 2, "others": ["Bob", "Cleo"]} in content(near)["groups"]
    assert all(len(result.content[0].text) < 2500 for result in (found, answers, why, near))


def test_a_question_with_several_conditions_is_answered_with_its_steps(service: Service) -> None:
    question = "SELECT ?x { <Ann> <married to> ?y . ?y <father of> ?x }"
    asked, refused = talk(
        service,
        ("ask", {"question": question, "top_k": 3, "graph": "family"}),
        ("ask", {"question": "SELECT ?x ?y { ?x <mother of> ?y }", "graph": "family"}),
    )
    first = content(asked)["answers"][0]
    assert first["follows"] and first["bindings"].keys() == {"y"}
    assert [step["fact"][1] for step in first["steps"]] == ["father of", "married to"]
    assert refused.is_error and "one free variable" in refused.content[0].text


def test_missing_facts_are_searched_within_the_time_given(service: Service) -> None:
    asked = {"graph": "family", "top": 3}
    careful, free = talk(service, ("missing_facts", asked), ("missing_facts", {**asked, "min_cases": 0}))
    assert content(careful) == {"facts": [], "finished": True}  # no reason in so small a graph has three cases
    found = content(free)
    assert found["finished"] and 0 < len(found["facts"]) <= 3


def test_errors_are_sentences_that_an_assistant_can_act_on(service: Service) -> None:
    wrong, open_, which = talk(
        service,
        ("predict", {"head": "Anne", "relation": "mother of", "graph": "family"}),
        ("predict", {"head": "Ann", "graph": "family"}),
        ("predict", {"head": "Ann", "relation": "mother of"}),
    )
    assert "find_entity finds names" in wrong.content[0].text and "gamma describe" not in wrong.content[0].text
    for result, words in ((wrong, "did you mean 'Ann'"), (open_, "exactly two"), (which, "family, hostile")):
        assert result.is_error and words in result.content[0].text and "Traceback" not in result.content[0].text


def test_the_command_speaks_over_standard_input() -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gamma_kg", "mcp", "demo"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )

    async def run() -> Any:
        async with Client(stdio_client(command)) as client:
            return await client.call_tool("predict", {"head": "Kenya", "relation": "borders", "top_k": 1})

    assert content(anyio.run(run))["answers"][0]["name"] == "Tanzania"


def test_the_server_speaks_over_http(service: Service) -> None:
    import threading
    import time

    import uvicorn

    from gamma_kg.serve.run import listen

    listener = listen("127.0.0.1", 0)
    app = create_server(service).streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)

        async def run() -> Any:
            async with Client(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp") as client:
                return await client.call_tool("find_entity", {"text": "cleo", "graph": "family"})

        assert content(anyio.run(run))["entities"][0]["name"] == "Cleo"
    finally:
        server.should_exit = True
        thread.join()
