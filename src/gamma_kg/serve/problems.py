"""Errors as problem+json (RFC 9457): the sentence of the command line in `detail`, the kind in `type`."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from gamma_kg.errors import GammaError, UnknownNameError
from gamma_kg.serve.batching import QueueFullError, StoppingError
from gamma_kg.serve.hosted import UnknownGraphError
from gamma_kg.serve.jobs import UnknownJobError
from gamma_kg.serve.schemas import Problem
from gamma_kg.serve.service import TimeLimitError

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1
# The first that fits counts.
STATUS: tuple[tuple[type[GammaError], int], ...] = (
    (QueueFullError, 429),
    (StoppingError, 503),
    (TimeLimitError, 503),
    (UnknownGraphError, 404),
    (UnknownJobError, 404),
    (UnknownNameError, 404),
    (GammaError, 400),
)
LONGEST_DETAIL = 2000
log = logging.getLogger("gamma_kg.serve")


def problem(status: int, detail: str, *, kind: str | None = None) -> JSONResponse:
    """A response that says what went wrong."""
    title = HTTPStatus(status).phrase
    body = {"type": f"urn:gamma:problem:{kind or title.lower().replace(' ', '-')}", "title": title, "status": status}
    headers = {"Retry-After": str(RETRY_SECONDS)} if status in (429, 503) else {}
    body["detail"] = " ".join(detail.split())[:LONGEST_DETAIL]
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def status_of(error: GammaError) -> int:
    return next(status for kind, status in STATUS if isinstance(error, kind))


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that an operation documents."""
    return {
        status: {"model": Problem, "description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Turns every error of the app into a problem; for a person who reads pages, into a page."""

    @app.exception_handler(GammaError)
    async def on_gamma_error(request: Request, error: GammaError) -> Response:
        return _shown(request, status_of(error), str(error))

    @app.exception_handler(RequestValidationError)
    async def on_invalid(request: Request, error: RequestValidationError) -> Response:
        return _shown(request, 422, "; ".join(_complaint(entry) for entry in error.errors()[:5]))

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        answer = _shown(request, error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def on_failure(request: Request, error: Exception) -> Response:
        # Nothing of the inside goes to the caller; the log has all of it.
        log.error("failure", exc_info=error)
        return _shown(request, 500, "the server failed on this request; its log says why")


def _shown(request: Request, status: int, detail: str) -> Response:
    render = getattr(request.app.state, "render_problem", None)
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1")
    if render is not None and wants_page:
        page: HTMLResponse = render(request, status, HTTPStatus(status).phrase, " ".join(detail.split()))
        if status in (429, 503):
            page.headers["Retry-After"] = str(RETRY_SECONDS)
        return page
    return problem(status, detail)


def _complaint(entry: Any) -> str:
    where = ".".join(str(part) for part in entry["loc"][1:]) or str(entry["loc"][0])
    return f"{where[:100]}: {entry['msg']}"
