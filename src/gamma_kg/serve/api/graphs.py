"""Graphs, names, entities and their neighbourhoods."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, File, Query, Response, UploadFile

from gamma_kg.explain.neighbourhood_picture import draw_neighbourhood
from gamma_kg.serve import schemas, views
from gamma_kg.serve.facts import groups_of
from gamma_kg.serve.problems import responses
from gamma_kg.serve.service import Service
from gamma_kg.serve.uploads import take_in

Text = Annotated[str, Query(max_length=schemas.MAX_NAME)]
Limit = Annotated[int, Query(ge=1, le=1_000_000, description="At most; the server has a limit of its own.")]
Name = Annotated[str, Query(min_length=1, max_length=schemas.MAX_NAME)]


def routes(service: Service) -> APIRouter:
    api = APIRouter(prefix="/v1", tags=["graphs"])
    most = service.limits.results

    @api.get("/graphs", responses=responses(422))
    async def list_graphs() -> schemas.GraphList:
        """The graphs that this server holds, and the model that answers."""
        return schemas.GraphList(
            graphs=[views.graph_info(graph) for graph in service.graphs],
            model=service.model.description,
            version=version("gamma-kg"),
        )

    @api.post("/graphs", status_code=201, responses=responses(400, 413, 422, 429, 503))
    async def upload_graph(file: Annotated[UploadFile, File(description="A file of facts.")]) -> schemas.GraphInfo:
        """Load a graph of one's own: TSV, CSV, JSON lines, Parquet, RDF, OWL or OBO, by the file's ending."""
        return views.graph_info(await take_in(service, file))

    @api.get("/graphs/{graph}", responses=responses(404, 422))
    async def show_graph(graph: str) -> schemas.GraphInfo:
        """Statistics of a graph."""
        return views.graph_info(service.graphs[graph])

    @api.delete("/graphs/{graph}", status_code=204, responses=responses(400, 404, 422))
    async def remove_graph(graph: str) -> Response:
        """Forget an uploaded graph."""
        service.graphs.remove(graph)
        return Response(status_code=204)

    @api.get("/graphs/{graph}/entities", responses=responses(404, 422))
    def find_entities(graph: str, q: Text = "", limit: Limit = 10) -> list[schemas.NamedEntity]:
        """Entities whose name begins with, contains or resembles a text, best first."""
        # In a thread of its own: a search through millions of names must not hold up the others.
        return views.found_entities(service.graphs[graph], q, min(limit, most))

    @api.get("/graphs/{graph}/relations", responses=responses(404, 422))
    async def find_relations(graph: str, q: Text = "", limit: Limit = 10) -> list[schemas.NamedRelation]:
        """Relations whose name begins with, contains or resembles a text, best first."""
        return views.found_relations(service.graphs[graph], q, min(limit, most))

    @api.get("/graphs/{graph}/entity", responses=responses(404, 422))
    async def show_entity(
        graph: str, name: Name, offset: Annotated[int, Query(ge=0, le=10**9)] = 0, limit: Limit = 50
    ) -> schemas.Entity:
        """An entity with its types and a page of its facts."""
        return views.entity(service.graphs[graph], name, offset, min(limit, most))

    @api.get("/graphs/{graph}/neighbourhood", responses=responses(404, 422))
    async def show_neighbourhood(
        graph: str, name: Name, shown: Annotated[int, Query(ge=1, le=100)] = views.NEIGHBOURS_SHOWN
    ) -> schemas.Neighbourhood:
        """The relations of an entity, each with some of the entities at its other end."""
        return views.neighbourhood(service.graphs[graph], name, shown)

    @api.get(
        "/graphs/{graph}/neighbourhood.svg",
        response_class=Response,
        responses={200: {"content": {"image/svg+xml": {}}, "description": "A picture."}, **responses(404, 422)},
    )
    async def draw(graph: str, name: Name) -> Response:
        """The neighbourhood of an entity as a picture."""
        hosted = service.graphs[graph]
        index = hosted.kg.entity_id(name)
        groups = groups_of(hosted.kg, index, views.NEIGHBOURS_SHOWN)
        return Response(draw_neighbourhood(hosted.kg.entities[index], groups), media_type="image/svg+xml")

    return api
