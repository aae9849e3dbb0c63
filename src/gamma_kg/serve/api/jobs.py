"""Completion and calibration as jobs, and what a person thinks of the facts they propose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from gamma_kg.errors import DataError
from gamma_kg.serve import schemas, views
from gamma_kg.serve.downloads import Format, download
from gamma_kg.serve.jobs import Job
from gamma_kg.serve.problems import responses
from gamma_kg.serve.service import Service, check_fact

LOOK_SECONDS = 0.15  # between two looks at a job's progress
SILENCE_SECONDS = 10.0  # after which a comment keeps the connection open
FILES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}, "description": "A file."}}


def routes(service: Service) -> APIRouter:
    api = APIRouter(prefix="/v1", tags=["jobs"])

    @api.post("/graphs/{graph}/jobs", status_code=202, responses=responses(400, 404, 413, 422, 429, 503))
    async def start_job(graph: str, request: schemas.JobRequest) -> schemas.JobInfo:
        """Look for missing facts of an entity, a relation or the whole graph, or fit probabilities to the graph."""
        hosted = service.graphs[graph]
        if request.kind == "calibrate":
            return views.job_info(service.start_calibrate(hosted))
        job = service.start_complete(
            hosted,
            entity=request.entity,
            relation=request.relation,
            top=request.top,
            min_probability=request.min_probability,
            min_cases=request.min_cases,
            seconds=request.seconds,
        )
        return views.job_info(job)

    @api.get("/jobs/{job}", responses=responses(404, 422))
    async def show_job(job: str) -> schemas.JobInfo:
        """How far a job has come."""
        return views.job_info(service.jobs[job])

    @api.delete("/jobs/{job}", responses=responses(404, 422))
    async def cancel_job(job: str) -> schemas.JobInfo:
        """End a job within a few queries."""
        service.jobs.cancel(service.jobs[job])
        return views.job_info(service.jobs[job])

    @api.get(
        "/jobs/{job}/events",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}, "description": "Events."}, **responses(404, 422)},
    )
    async def follow_job(job: str) -> StreamingResponse:
        """Progress as server-sent events, each with the job as JSON; the stream ends with the job."""
        return StreamingResponse(_events(service, service.jobs[job]), media_type="text/event-stream")

    @api.get("/jobs/{job}/result", responses=responses(400, 404, 422))
    async def show_result(job: str) -> schemas.JobResult:
        """The facts that a job has found."""
        found = _ended(service.jobs[job])
        return schemas.JobResult(job=views.job_info(found), facts=views.proposals(service.graphs[found.graph], found))

    @api.get("/jobs/{job}/result/{kind}", response_class=Response, responses={**FILES, **responses(400, 404, 422)})
    async def save_result(job: str, kind: Format) -> Response:
        """The same as a file."""
        found = _ended(service.jobs[job])
        graph = service.graphs[found.graph]
        rows = [p.model_dump(exclude={"verdict"}) for p in views.proposals(graph, found)]
        return download(service, graph, rows, kind)

    @api.put("/graphs/{graph}/decisions", responses=responses(400, 404, 413, 422))
    async def decide(graph: str, decision: schemas.Decision) -> schemas.Decision:
        """Accept or reject a proposed fact."""
        hosted = service.graphs[graph]
        fact = (decision.head, decision.relation, decision.tail)
        check_fact(hosted.kg, fact)
        hosted.review.decide(fact, decision.verdict, decision.probability)
        return decision

    @api.get("/graphs/{graph}/decisions", responses=responses(404, 422))
    async def show_decisions(graph: str) -> schemas.Decisions:
        """Facts accepted and rejected so far."""
        review = service.graphs[graph].review
        accepted, rejected = (
            [schemas.Fact(head=h, relation=r, tail=t) for (h, r, t), _ in review.facts(verdict)]
            for verdict in ("accepted", "rejected")
        )
        return schemas.Decisions(accepted=accepted, rejected=rejected)

    @api.get("/graphs/{graph}/accepted/{kind}", response_class=Response, responses={**FILES, **responses(404, 422)})
    async def save_accepted(graph: str, kind: Format) -> Response:
        """The accepted facts as a file."""
        hosted = service.graphs[graph]
        rows = [
            {"head": h, "relation": r, "tail": t, **({} if p is None else {"probability": p})}
            for (h, r, t), p in hosted.review.facts("accepted")
        ]
        return download(service, hosted, rows, kind, asserted=True)

    return api


def _ended(job: Job) -> Job:
    if job.state != "done":
        raise DataError(f"the job is {job.state}; its result is there when it is done")
    return job


async def _events(service: Service, job: Job) -> AsyncIterator[bytes]:
    last, silence = "", 0.0
    while True:
        is_last = job.has_ended or service.is_stopping  # looked at first, so that the end is always told
        shown = json.dumps(views.job_info(job).model_dump())
        if shown != last:
            last, silence = shown, 0.0
            yield f"event: progress\ndata: {shown}\n\n".encode()
        if is_last:
            yield b"event: end\ndata: {}\n\n"
            return
        await asyncio.sleep(LOOK_SECONDS)
        silence += LOOK_SECONDS
        if silence >= SILENCE_SECONDS:
            silence = 0.0
            yield b": still here\n\n"
