"""Asking for the open part of a fact, and why an answer is believed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from fastapi.responses import HTMLResponse

from gamma_kg.drawing.network import Arrow
from gamma_kg.errors import DataError, UnknownNameError
from gamma_kg.explain.picture import draw_paths
from gamma_kg.explain.text import cause_text
from gamma_kg.predicting.prediction import Query
from gamma_kg.serve.examples import ExampleQuestion, example_questions
from gamma_kg.serve.hosted import HostedGraph
from gamma_kg.serve.pages.rendering import Given, Render, address, inline
from gamma_kg.serve.service import Known, Service, Triple, Wanted


def routes(service: Service, render: Render) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/g/{graph}/ask")
    async def ask(
        request: Request,
        graph: str,
        head: Given = "",
        relation: Given = "",
        tail: Given = "",
        known: Known = "exclude",
        type: Given = "",
        least: Annotated[float, Parameter(ge=0, le=100)] = 0,
        top: Annotated[int, Parameter(ge=1, le=200)] = 10,
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        query = (head.strip() or None, relation.strip() or None, tail.strip() or None)
        answers, complaint, status = None, "", 200
        meant: list[ExampleQuestion] = []
        if query.count(None) == 1:
            wanted = Wanted(top, known, type.strip() or None, least / 100)
            try:
                (answers,) = await service.predict(hosted, [query], wanted)
            except UnknownNameError as error:
                complaint, status, meant = str(error), 404, _meant(hosted, query)
                if meant:  # the command line's advice is of no use beside links
                    complaint = complaint.partition(";")[0] + "."
            except DataError as error:
                complaint, status = str(error), 404
        elif query.count(None) != 3:
            complaint = "Fill in two of the three fields; the third is predicted."
        verdicts = [hosted.review.verdict((a.head, a.relation, a.tail)) for a in answers or ()]
        return render(
            request,
            "ask.html",
            status,
            graph=hosted,
            query=query,
            asked=("head", "relation", "tail")[query.index(None)] if query.count(None) == 1 else None,
            answers=None if answers is None else list(zip(answers, verdicts, strict=True)),
            complaint=complaint,
            meant=meant,
            known=known,
            type=type,
            least=least,
            top=top,
            examples=example_questions(hosted) if answers is None else [],
        )

    @pages.get("/g/{graph}/why")
    async def why(
        request: Request,
        graph: str,
        head: Given,
        relation: Given,
        tail: Given,
        without_head: Annotated[list[Given], Parameter(max_length=20)] = [],  # noqa: B006
        without_relation: Annotated[list[Given], Parameter(max_length=20)] = [],  # noqa: B006
        without_tail: Annotated[list[Given], Parameter(max_length=20)] = [],  # noqa: B006
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        fact = (head, relation, tail)
        gone = list(zip(without_head, without_relation, without_tail, strict=False))
        found = await service.explain(hosted, fact, without=gone)
        before = await service.explain(hosted, fact, paths=1, facts=0) if gone else None

        def here(without: list[Triple]) -> str:
            heads, relations, tails = zip(*without, strict=True) if without else ((), (), ())
            return address(
                f"/g/{graph}/why", head=head, relation=relation, tail=tail,
                without_head=heads, without_relation=relations, without_tail=tails,
            )  # fmt: skip

        def less(arrow: Arrow) -> str:
            return here([*gone, (arrow.head, arrow.relation, arrow.tail)])

        return render(
            request,
            "why.html",
            graph=hosted,
            why=found,
            before=before,
            gone=[(f, here([g for g in gone if g != f])) for f in gone],
            all_back=here([]),
            cause=cause_text(found),
            most=max((abs(f.drop) for f in found.facts), default=0) or 1.0,
            picture=inline(draw_paths(found, link=less)),
            without=lambda f: here([*gone, (f.head, f.relation, f.tail)]),
            verdict=hosted.review.verdict(fact),
        )

    return pages


def _meant(graph: HostedGraph, query: Query, count: int = 4) -> list[ExampleQuestion]:
    """The same question with names that resemble the first one that the graph does not know."""
    head, relation, tail = query
    if head is not None and head not in graph.kg.entities:
        return [ExampleQuestion(graph.kg.entities[i], relation, tail) for i in graph.entities.find(head, count)]
    if relation is not None and relation not in graph.kg.relations:
        return [ExampleQuestion(head, graph.kg.relations[i], tail) for i in graph.relations.find(relation, count)]
    if tail is not None and tail not in graph.kg.entities:
        return [ExampleQuestion(head, relation, graph.kg.entities[i]) for i in graph.entities.find(tail, count)]
    return []
