"""The service behind HTTP: REST under /v1, pages for people, health and figures for operators."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Response

from gamma_kg.serve import pages, problems
from gamma_kg.serve.api import graphs, jobs, questions
from gamma_kg.serve.observing import Figures, Watch
from gamma_kg.serve.security import Gate, Token
from gamma_kg.serve.service import Service

DESCRIPTION = "Ranked missing facts on any knowledge graph, with reasons. Errors are problem+json (RFC 9457)."


def create_app(service: Service, *, host: str = "127.0.0.1", token: str | None = None) -> FastAPI:
    """The app; it owns the service from now on and closes it at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="GAMMA",
        version=version("gamma-kg"),
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # the usual page loads its script from elsewhere
        redoc_url=None,
    )
    figures = Figures(service)
    problems.install(app)
    for group in (questions, graphs, jobs):  # routes are tried in this order, and questions come most often
        app.include_router(group.routes(service))

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        if service.is_stopping:
            return problems.problem(503, "the server is ending")
        return Response('{"status": "ready"}', media_type="application/json")

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(figures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    guard = Token(token)
    pages.install(app, service, guard)
    limits: dict[str, Any] = {"body_bytes": service.limits.body_bytes, "upload_bytes": service.limits.upload_bytes}
    app.add_middleware(Gate, token=guard, host=host, **limits)
    app.add_middleware(Watch, figures=figures)
    return app
