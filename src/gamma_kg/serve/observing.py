"""What the operator sees: figures for Prometheus and a log of one JSON object a line.

Names and addresses come from anybody: JSON in ASCII lets no line end, no terminal command and no forged entry through.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from typing import IO, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from starlette.datastructures import Headers

from gamma_kg.machine.memory import peak_memory_mb
from gamma_kg.serve.security import App, Message, Receive, Scope, Send
from gamma_kg.serve.service import Service

LONGEST = 300
BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
log = logging.getLogger("gamma_kg.serve")
access_log = logging.getLogger("gamma_kg.serve.access")


class Figures:
    """Counts of requests by route and status, how long they took, and what the service says of itself."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        labels = ("method", "route", "status")
        self.requests = Counter("gamma_requests", "Requests answered", labels, registry=self._registry)
        self.seconds = Histogram(
            "gamma_request_seconds", "Time to the last byte", ("route",), registry=self._registry, buckets=BUCKETS
        )
        self._service = service
        self._registry.register(self)

    def collect(self) -> list[Metric]:
        threads, jobs = self._service.threads, list(self._service.jobs)
        figures = {
            "gamma_questions": ("Questions answered by the model", threads.questions),
            "gamma_batches": ("Batches they were answered in", threads.batches),
            "gamma_questions_waiting": ("Questions that wait for the model", threads.waiting),
            "gamma_jobs_open": ("Jobs that wait or run", sum(not job.has_ended for job in jobs)),
            "gamma_graphs": ("Graphs held", len(self._service.graphs)),
            "gamma_peak_memory_bytes": ("Largest resident size so far", peak_memory_mb() * 2**20),
        }
        return [GaugeMetricFamily(name, text, value=float(value)) for name, (text, value) in figures.items()]

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Watch:
    """ASGI: counts and logs every request, by its route and never by the address as it was typed."""

    def __init__(self, app: App, *, figures: Figures) -> None:
        self._app, self._figures = app, figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            seconds = time.monotonic() - started
            route = getattr(scope.get("route"), "path", "(none)")
            method = scope["method"] if scope["method"] in METHODS else "(other)"
            self._figures.requests.labels(method, route, str(status)).inc()
            self._figures.seconds.labels(route).observe(seconds)
            if access_log.isEnabledFor(logging.INFO):
                details = {"method": method, "path": scope["path"][:LONGEST], "status": status}
                details |= {"ms": round(1000 * seconds, 2), "agent": Headers(scope=scope).get("user-agent", "")[:80]}
                access_log.info("request", extra={"details": details})


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


class JsonLines(logging.Formatter):
    """One JSON object a line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage()[:2000],
            **getattr(record, "details", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def _is_no_stop(record: logging.LogRecord) -> bool:
    """False for what a second Ctrl-C leaves: whoever asks for an end at once knows why it came."""
    kind = record.exc_info[0] if record.exc_info else None
    is_stop = kind is not None and issubclass(kind, (asyncio.CancelledError, KeyboardInterrupt))
    return not is_stop and not record.getMessage().rstrip().endswith(("CancelledError", "KeyboardInterrupt"))


def set_up_log(level: str, stream: IO[str] | None = None) -> None:
    """Sends the server's and uvicorn's log to stderr as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(_is_no_stop)
    for name in ("gamma_kg.serve", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn.error").handlers = []
    logging.getLogger("uvicorn.error").propagate = True
