"""Tools for assistants over the Model Context Protocol: find names, predict, ask, explain, missing facts, neighbours.

Results are small and in names, because a model reads them. An error is a sentence that says what to do, as everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from importlib.metadata import version
from typing import Annotated, Any, Literal, ParamSpec

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from gamma_kg.complete import Completion
from gamma_kg.errors import DataError, GammaError
from gamma_kg.explain.text import cause_text, path_text
from gamma_kg.logic.ask import worth_telling
from gamma_kg.rules.reasons import MIN_CASES
from gamma_kg.serve import schemas, views
from gamma_kg.serve.hosted import HostedGraph
from gamma_kg.serve.service import Service, Wanted

Given = ParamSpec("Given")
EXACT = "Exact, as find_entity gives it."
Name = Annotated[str, Field(max_length=2000, description=EXACT)]
OpenName = Annotated[
    str | None, Field(default=None, max_length=2000, description=f"{EXACT} Leave out the one to be predicted.")
]
Graph = Annotated[
    str | None, Field(default=None, description="Id of the graph; may be left out if the server has only one.")
]
LOOK_SECONDS = 0.05
SEARCH_COMMAND = "`gamma describe GRAPH --search WORD`"  # in the advice of errors: an assistant has a tool instead
INSTRUCTIONS = (
    "Predicts facts that are missing from a knowledge graph. Facts are (head, relation, tail), by name. Names must be "
    "exact: look them up with find_entity first. Predictions are likely, not certain: give their probability, and call "
    "explain before you rely on one."
)


def create_server(service: Service) -> MCPServer[Any]:
    """An MCP server with all tools over the service's graphs."""
    held = ", ".join(f"{graph.id} ({graph.kg.num_triples:,} facts)" for graph in service.graphs)
    server: MCPServer[Any] = MCPServer(
        "gamma", version=version("gamma-kg"), instructions=f"{INSTRUCTIONS} Graphs here: {held}.", log_level="WARNING"
    )
    tools = _Tools(service)
    for tool in (tools.find_entity, tools.predict, tools.ask, tools.explain, tools.missing_facts, tools.neighbours):
        server.add_tool(_in_words(tool), name=tool.__name__, description=tool.__doc__)
    return server


class _Tools:
    """Each public method is a tool; its docstring and parameters are what the assistant reads."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def find_entity(
        self,
        text: Annotated[str, Field(max_length=2000, description="A name, its beginning, a part of it, or misspelt.")],
        kind: Annotated[Literal["entity", "relation"], Field(description="What to look for.")] = "entity",
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
        graph: Graph = None,
    ) -> dict[str, Any]:
        """Find entities or relations of the graph by name. Use the names it returns in all other tools.

        An empty text lists the best connected ones, which shows what the graph is about.
        """
        hosted = self._graph(graph)
        if kind == "relation":
            return {"relations": [r.model_dump() for r in views.found_relations(hosted, text, limit)]}
        return {"entities": [e.model_dump() for e in views.found_entities(hosted, text, limit)]}

    async def predict(
        self,
        head: OpenName = None,
        relation: OpenName = None,
        tail: OpenName = None,
        top_k: Annotated[int, Field(ge=1, le=50)] = 5,
        include_known: Annotated[bool, Field(description="Also list facts that the graph holds already.")] = False,
        graph: Graph = None,
    ) -> dict[str, Any]:
        """Complete a fact: give exactly two of head, relation and tail; the third is predicted and ranked.

        Each answer has a probability and says whether the graph already holds the fact (known). Where fitted is
        true, 0.3 means that 3 of 10 such answers are right; else it is the share among all candidates.
        """
        wanted, hosted = Wanted(top_k, "include" if include_known else "exclude"), self._graph(graph)
        (answers,) = await self._service.predict(hosted, [(head, relation, tail)], wanted)
        return {
            "query": {"head": head, "relation": relation, "tail": tail},
            "fitted": hosted.calibration is not None,
            "answers": [
                {"name": a.name, "probability": round(a.probability, 4), "known": a.known}
                | ({"speaks_against_it": a.why_not} if a.why_not else {})
                for a in answers
            ],
        }

    async def explain(
        self,
        head: Name,
        relation: Name,
        tail: Name,
        graph: Graph = None,
    ) -> dict[str, Any]:
        """Why the model believes a fact: in_short, rules of the graph that speak for it, and the facts it rests on.

        paths are facts that lead from head to tail; score_falls_by says how much a path or fact counts; then_rank is
        the answer's rank without that fact; speaks_against_it, where given, is a pattern of the graph that it breaks.
        """
        found = await self._service.explain(self._graph(graph), (head, relation, tail), paths=3, facts=3)
        return {
            "fact": [head, relation, tail],
            "probability": round(found.probability, 4),
            "rank": found.rank,
            "known": found.known,
            "in_short": cause_text(found),
            "rules": [reason.text for reason in found.reasons[:3]],
            "paths": [
                {"path": path_text(found.head, path), "score_falls_by": round(path.drop, 2)} for path in found.paths
            ],
            "rests_on": [
                {"fact": [f.head, f.relation, f.tail], "score_falls_by": round(f.drop, 2), "then_rank": f.rank}
                for f in found.facts
            ],
        } | ({"speaks_against_it": found.why_not} if found.why_not else {})

    async def ask(
        self,
        question: Annotated[
            str,
            Field(
                max_length=schemas.MAX_QUESTION,
                description="SELECT ?x WHERE { <A> <relation> ?y . ?y <relation 2> ?x }: triples, "
                "UNION, MINUS, FILTER NOT EXISTS, ^p, p/q; names as find_entity gives them, between < and >.",
            ),
        ],
        top_k: Annotated[int, Field(ge=1, le=50)] = 5,
        only_new: Annotated[bool, Field(description="Leave out what follows from the graph as it is.")] = False,
        graph: Graph = None,
    ) -> dict[str, Any]:
        """Answer a question with several conditions, in SPARQL with one variable; missing links are predicted.

        Each answer says whether it follows from the graph without prediction, the best entity for every other
        variable, and its steps: facts the graph holds (known) or predicted ones. Call explain for a predicted step.
        Answers less likely than 0.5 % are left out.
        """
        found = await self._service.ask(self._graph(graph), question, top_k=top_k, only_new=only_new)
        return {
            "answers": [
                {
                    "name": a.name,
                    "probability": round(a.probability, 4),
                    "follows": a.follows,
                    "bindings": a.bindings,
                    "steps": [
                        {"fact": [s.head, s.relation, s.tail], "known": s.known, "probability": round(s.probability, 4)}
                        for s in a.steps
                    ],
                }
                for a in worth_telling(found)
            ]
        }

    async def missing_facts(
        self,
        entity: Annotated[str | None, Field(max_length=2000, description="Only facts about this entity.")] = None,
        relation: Annotated[str | None, Field(max_length=2000, description="Only facts of this relation.")] = None,
        top: Annotated[int, Field(ge=1, le=100)] = 10,
        seconds: Annotated[float, Field(gt=0, le=300, description="Time to search at most.")] = 20.0,
        min_cases: Annotated[
            int, Field(ge=0, description="Cases in the graph that must speak for each fact; 0: none need to.")
        ] = MIN_CASES,
        graph: Graph = None,
    ) -> dict[str, Any]:
        """The most probable facts that the graph does not hold: about an entity, of a relation, or of the whole graph.

        finished is false when the time was over before all promising queries were asked.
        """
        job = self._service.start_complete(
            self._graph(graph), entity=entity, relation=relation, top=top, seconds=seconds, min_cases=min_cases
        )
        try:
            while not job.has_ended:
                await anyio.sleep(LOOK_SECONDS)
        except BaseException:
            self._service.jobs.cancel(job)
            raise
        if not isinstance(job.result, Completion):
            raise DataError(job.error or f"the search was {job.state}")
        return {
            "facts": [
                {"fact": [f.head, f.relation, f.tail], "probability": round(f.probability, 4)} for f in job.result.facts
            ],
            "finished": job.result.is_finished,
        }

    async def neighbours(
        self,
        name: Name,
        per_relation: Annotated[int, Field(ge=1, le=50)] = 8,
        graph: Graph = None,
    ) -> dict[str, Any]:
        """What the graph already says of an entity: its relations, each with some of the entities at the other end.

        is_head tells whether the entity is the head of these facts; count is how many there are in all.
        """
        return views.neighbourhood(self._graph(graph), name, per_relation).model_dump()

    def _graph(self, id_: str | None) -> HostedGraph:
        held = list(self._service.graphs)
        if id_ is None and len(held) != 1:
            raise DataError(f"name one of the graphs: {', '.join(graph.id for graph in held)}")
        return held[0] if id_ is None else self._service.graphs[id_]


def _in_words(
    tool: Callable[Given, Awaitable[dict[str, Any]]],
) -> Callable[Given, Awaitable[CallToolResult]]:
    """The tool, with its result as short text for a model to read, and errors of the caller as sentences."""

    @wraps(tool)
    async def run(*args: Given.args, **kwargs: Given.kwargs) -> CallToolResult:
        try:
            found = await tool(*args, **kwargs)
        except GammaError as error:
            sentence = " ".join(str(error).split())
            raise ToolError(sentence.replace(SEARCH_COMMAND, "find_entity")) from error
        # By itself the package would set the text in lines and blanks: as many tokens again.
        return CallToolResult(
            content=[TextContent(text=json.dumps(found, ensure_ascii=False))], structured_content=found
        )

    return run
