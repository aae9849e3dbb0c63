"""What a graph holds: its overview, a search, an entity, a relation."""

from __future__ import annotations

import asyncio
from itertools import groupby
from operator import itemgetter
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gamma_kg.explain.neighbourhood_picture import draw_narrow_neighbourhood, draw_neighbourhood
from gamma_kg.serve import schemas, views
from gamma_kg.serve.examples import example_questions
from gamma_kg.serve.facts import groups_of
from gamma_kg.serve.pages.rendering import Given, Render, address, inline
from gamma_kg.serve.service import Service

FACTS_A_PAGE = 50


def routes(service: Service, render: Render) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/g/{graph}")
    async def overview(request: Request, graph: str) -> HTMLResponse:
        hosted = service.graphs[graph]
        return render(
            request,
            "overview.html",
            graph=hosted,
            info=views.graph_info(hosted),
            relations=views.found_relations(hosted, "", 12),
            entities=views.found_entities(hosted, "", 12),
            examples=example_questions(hosted),
            model=service.model.description,
        )

    @pages.get("/g/{graph}/search")
    async def search(request: Request, graph: str, q: Given = "") -> Response:
        hosted = service.graphs[graph]
        if q in hosted.kg.entities:
            return RedirectResponse(address(f"/g/{graph}/entity", name=q), 303)
        found = views.found_entities(hosted, q, 30)
        relations = views.found_relations(hosted, q, 10) if q.strip() else []
        return render(request, "search.html", graph=hosted, q=q, found=found, relations=relations, complaint="")

    @pages.get("/g/{graph}/entity")
    async def entity(
        request: Request, graph: str, name: Given, offset: Annotated[int, Query(ge=0, le=10**9)] = 0
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        if name not in hosted.kg.entities:  # an old link, or typed into the address: what resembles it helps most
            similar = views.found_entities(hosted, name, 10)
            complaint = f"no entity is named {name!r}"
            return render(
                request, "search.html", 404, graph=hosted, q=name, found=similar, relations=[], complaint=complaint
            )
        card = views.entity(hosted, name, offset, FACTS_A_PAGE)
        groups = groups_of(hosted.kg, hosted.kg.entity_id(name), views.NEIGHBOURS_SHOWN)
        pictures = [
            draw(card.name, groups, link=lambda other: address(f"/g/{graph}/entity", name=other))
            for draw in (draw_neighbourhood, draw_narrow_neighbourhood)
        ]
        return render(
            request,
            "entity.html",
            graph=hosted,
            card=card,
            facts=[
                (slot, [f.tail if f.is_head else f.head for f in same]) for slot, same in groupby(card.facts, _slot)
            ],
            picture=inline(pictures[0]),
            narrow_picture=inline(pictures[1]),
            page_size=FACTS_A_PAGE,
            asks=[(g.relation, g.is_head) for g in groups],
        )

    @pages.get("/g/{graph}/relation")
    async def relation(
        request: Request, graph: str, name: Given, offset: Annotated[int, Query(ge=0, le=10**9)] = 0
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        index = hosted.kg.relation_id(name)
        facts = await asyncio.to_thread(hosted.facts_with, index, offset, FACTS_A_PAGE)  # may look through all facts
        return render(
            request,
            "relation.html",
            graph=hosted,
            name=hosted.kg.relations[index],
            identifier=hosted.kg.relations.identifier(index),
            count=int(hosted.facts_by_relation[index]),
            facts=[(head, [tail for _, tail in same]) for head, same in groupby(facts, itemgetter(0))],
            offset=offset,
            page_size=FACTS_A_PAGE,
        )

    return pages


def _slot(fact: schemas.OwnFact) -> tuple[str, bool]:
    """The relation of an entity's fact, and the end at which the entity stands."""
    return fact.relation, fact.is_head
