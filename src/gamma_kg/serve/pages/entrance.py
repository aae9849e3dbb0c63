"""The way in: which graph, sign-in, upload, the description of the interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gamma_kg.errors import GammaError
from gamma_kg.serve import reference, views
from gamma_kg.serve.pages.rendering import Render
from gamma_kg.serve.problems import status_of
from gamma_kg.serve.security import COOKIE, Token
from gamma_kg.serve.service import Service
from gamma_kg.serve.uploads import KINDS, take_in


def routes(service: Service, render: Render, token: Token, openapi: Callable[[], dict[str, Any]]) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/")
    async def home() -> Response:
        held = list(service.graphs)
        return RedirectResponse(f"/g/{held[0].id}" if len(held) == 1 else "/graphs", 303)

    def shown(request: Request, status: int = 200, complaint: str = "") -> HTMLResponse:
        infos = [views.graph_info(graph) for graph in service.graphs]
        limits = service.limits
        return render(request, "graphs.html", status, infos=infos, endings=KINDS, limits=limits, complaint=complaint)

    @pages.get("/graphs")
    async def graphs(request: Request) -> HTMLResponse:
        return shown(request)

    @pages.post("/graphs")
    async def upload(request: Request, file: Annotated[UploadFile, File()]) -> Response:
        try:
            graph = await take_in(service, file)
        except GammaError as error:  # beside the form, where another file can be chosen
            return shown(request, status_of(error), str(error))
        return RedirectResponse(f"/g/{graph.id}", 303)

    @pages.post("/g/{graph}/remove")
    async def remove(graph: str) -> Response:
        service.graphs.remove(graph)
        return RedirectResponse("/graphs", 303)

    @pages.get("/sign-in")
    async def sign_in(request: Request) -> HTMLResponse:
        return render(request, "sign_in.html", refused=False, graphs=[])

    @pages.post("/sign-in")
    async def check(request: Request, secret: Annotated[str, Form(max_length=1000)] = "") -> Response:
        if not token.accepts(secret):
            return render(request, "sign_in.html", 401, refused=True, graphs=[])
        answer = RedirectResponse("/", 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, token.cookie(), httponly=True, samesite="strict", secure=is_secure)
        return answer

    @pages.get("/docs")
    async def docs(request: Request) -> HTMLResponse:
        return render(request, "docs.html", groups=reference.operations(openapi()))

    return pages
