"""The pages for people: made on the server from templates; each has an address and works without script."""

from __future__ import annotations

import re
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from gamma_kg.serve.pages import asking, entrance, finding, looking, questions
from gamma_kg.serve.pages.rendering import renderer
from gamma_kg.serve.security import Token
from gamma_kg.serve.service import Service

COMMAND = re.compile(r" \(`gamma [^)]*\)")  # advice for the command line


def install(app: FastAPI, service: Service, token: Token) -> None:
    """Adds all pages to the app."""
    render = renderer(service, token.is_wanted)
    app.mount("/static", StaticFiles(directory=str(files("gamma_kg.serve") / "static")), name="static")

    def problem_page(request: Request, status: int, title: str, detail: str) -> HTMLResponse:
        parts = request.url.path.split("/")
        graph = next((held for held in service.graphs if parts[1:3] == ["g", held.id]), None)
        url = request.url
        # What took too long, or came when too much waited, may be there at the next try.
        again = f"{url.path}?{url.query}" if status in (429, 503) and request.method == "GET" else None
        detail = COMMAND.sub("", detail)
        return render(request, "problem.html", status, graph=graph, heading=title, detail=detail, again=again)

    app.state.render_problem = problem_page
    app.include_router(entrance.routes(service, render, token, app.openapi))
    for group in (looking, asking, questions, finding):
        app.include_router(group.routes(service, render))
