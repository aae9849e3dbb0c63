"""Missing facts: the jobs that look for them, and what a person thinks of each."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gamma_kg.errors import DataError, GammaError
from gamma_kg.rules.reasons import MIN_CASES
from gamma_kg.serve import schemas, views
from gamma_kg.serve.hosted import HostedGraph
from gamma_kg.serve.pages.rendering import Given, Render
from gamma_kg.serve.problems import status_of
from gamma_kg.serve.service import Service, check_fact


def routes(service: Service, render: Render) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def shown(
        request: Request, hosted: HostedGraph, entity: str, relation: str, status: int = 200, complaint: str = ""
    ) -> HTMLResponse:
        jobs = [views.job_info(job) for job in service.jobs if job.graph == hosted.id]
        return render(
            request,
            "missing.html",
            status,
            graph=hosted,
            complaint=complaint,
            entity=entity,
            relation=relation,
            jobs=list(reversed(jobs)),
            accepted=hosted.review.facts("accepted"),
            rejected=hosted.review.facts("rejected"),
            calibration=hosted.calibration,
            least_cases=MIN_CASES,
        )

    @pages.get("/g/{graph}/missing")
    async def missing(request: Request, graph: str, entity: Given = "", relation: Given = "") -> HTMLResponse:
        return shown(request, service.graphs[graph], entity, relation)

    @pages.post("/g/{graph}/missing")
    async def start(
        request: Request,
        graph: str,
        kind: Annotated[str, Form(max_length=20)] = "complete",
        entity: Annotated[str, Form(max_length=schemas.MAX_NAME)] = "",
        relation: Annotated[str, Form(max_length=schemas.MAX_NAME)] = "",
        top: Annotated[int, Form(ge=1, le=1000)] = 100,
        min_cases: Annotated[int, Form(ge=0, le=1000)] = MIN_CASES,
    ) -> Response:
        hosted = service.graphs[graph]
        try:
            if kind == "calibrate":
                job = service.start_calibrate(hosted)
            else:
                most = min(top, service.limits.results)
                job = service.start_complete(
                    hosted,
                    entity=entity.strip() or None,
                    relation=relation.strip() or None,
                    top=most,
                    min_cases=min_cases,
                )
        except GammaError as error:  # beside the form, where it can be mended
            return shown(request, hosted, entity, relation, status_of(error), str(error))
        return RedirectResponse(f"/g/{graph}/jobs/{job.id}", 303)

    @pages.get("/g/{graph}/jobs/{job}")
    async def job_page(request: Request, graph: str, job: str) -> HTMLResponse:
        hosted, found = service.graphs[graph], service.jobs[job]
        facts = views.proposals(hosted, found) if found.state == "done" else []
        return render(request, "job.html", graph=hosted, job=views.job_info(found), facts=facts, wish=found.wish)

    @pages.post("/g/{graph}/jobs/{job}/cancel")
    async def cancel(graph: str, job: str) -> Response:
        service.jobs.cancel(service.jobs[job])
        return RedirectResponse(f"/g/{graph}/jobs/{job}", 303)

    @pages.post("/g/{graph}/decide")
    async def decide(
        request: Request,
        graph: str,
        head: Annotated[str, Form(max_length=schemas.MAX_NAME)],
        relation: Annotated[str, Form(max_length=schemas.MAX_NAME)],
        tail: Annotated[str, Form(max_length=schemas.MAX_NAME)],
        verdict: Annotated[str, Form(max_length=20)] = "",
        probability: Annotated[float | None, Form(ge=0, le=1)] = None,
    ) -> Response:
        hosted = service.graphs[graph]
        check_fact(hosted.kg, (head, relation, tail))
        if verdict not in ("accepted", "rejected", ""):
            raise DataError(f"a verdict is accepted or rejected, got {verdict!r}")
        hosted.review.decide((head, relation, tail), verdict or None, probability)  # type: ignore[arg-type]
        if request.headers.get("accept") == "application/json":  # the page's own script
            return Response(status_code=204)
        return RedirectResponse(_back(request, hosted), 303)

    return pages


def _back(request: Request, graph: HostedGraph) -> str:
    """Where a form came from, if that is a page of ours."""
    came = urlsplit(request.headers.get("referer", ""))
    is_ours = came.netloc == request.headers.get("host") and came.path.startswith("/g/")
    return came._replace(scheme="", netloc="").geturl() if is_ours else f"/g/{graph.id}/missing"
