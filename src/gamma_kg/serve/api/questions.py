"""Predictions and their reasons."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Response
from pydantic_core import to_json

from gamma_kg.explain import Explanation
from gamma_kg.serve import schemas, views
from gamma_kg.serve.problems import responses
from gamma_kg.serve.service import Service, Wanted


def routes(service: Service) -> APIRouter:
    api = APIRouter(prefix="/v1", tags=["questions"])

    @api.post(
        "/graphs/{graph}/predict",
        response_model=schemas.PredictResponse,
        responses=responses(400, 404, 413, 422, 429, 503),
    )
    async def predict(graph: str, request: schemas.PredictRequest) -> Response:
        """Ranked answers to questions of which two parts are given: head, relation or tail."""
        queries = [(q.head, q.relation, q.tail) for q in request.queries]
        wanted = Wanted(request.top_k, request.known, request.answer_type, request.min_probability)
        results = await service.predict(service.graphs[graph], queries, wanted)
        body = {
            "results": [
                {"query": {"head": h, "relation": r, "tail": t}, "answers": [views.answer(p) for p in predictions]}
                for (h, r, t), predictions in zip(queries, results, strict=True)
            ]
        }
        return Response(to_json(body), media_type="application/json")

    @api.post(
        "/graphs/{graph}/ask",
        response_model=schemas.AskResponse,
        responses=responses(400, 404, 413, 422, 429, 503),
    )
    async def ask(graph: str, request: schemas.AskRequest) -> Response:
        """Answers to a question with several steps, with the best entity for every variable and all steps."""
        question = request.question
        found = await service.ask(
            service.graphs[graph],
            views.formula(question) if isinstance(question, schemas.Conditions) else question,
            top_k=request.top_k,
            only_new=request.only_new,
            logic=request.logic,
            why=request.why,
        )
        body = {"answers": [asdict(answer) for answer in found]}
        return Response(to_json(body), media_type="application/json")

    async def explained(graph: str, request: schemas.ExplainRequest) -> Explanation:
        return await service.explain(
            service.graphs[graph],
            (request.head, request.relation, request.tail),
            without=[(f.head, f.relation, f.tail) for f in request.without],
            paths=request.paths,
            facts=request.facts,
        )

    @api.post(
        "/graphs/{graph}/explain",
        response_model=schemas.Explained,
        responses=responses(400, 404, 413, 422, 429, 503),
    )
    async def explain(graph: str, request: schemas.ExplainRequest) -> Response:
        """Why the model believes a fact: paths, branches, and the facts it rests on."""
        found = await explained(graph, request)
        return Response(found.json().encode(), media_type="application/json")

    @api.post(
        "/graphs/{graph}/explain.svg",
        response_class=Response,
        responses={
            200: {"content": {"image/svg+xml": {}}, "description": "A picture."},
            **responses(400, 404, 413, 422, 429, 503),
        },
    )
    async def draw(graph: str, request: schemas.ExplainRequest) -> Response:
        """The same as a picture."""
        return Response((await explained(graph, request)).svg(), media_type="image/svg+xml")

    return api
