"""A service with a small model on two graphs, and clients for it in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from clients import BASE, HOSTILE, MakeClient

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.predicting.models import NamedModel

pytest.importorskip("fastapi", reason="needs the extra `serve`: pip install -e .[serve]")

from fastapi.testclient import TestClient

from gamma_kg.serve.app import create_app
from gamma_kg.serve.hosted import HostedGraphs
from gamma_kg.serve.limits import Limits
from gamma_kg.serve.service import Service


@pytest.fixture
def hostile() -> KnowledgeGraph:
    """Names that would be markup, a formula, a path, or steer a terminal, if anybody let them."""
    names = [
        HOSTILE,
        "=1+1",
        "'\"><img src=x onerror=alert(1)>",
        "../../etc/passwd",
        "x\x1b[31m\u202ey",
        "a\nb",
        "{{7*7}}",
    ]
    return KnowledgeGraph.from_triples(
        [(a, "links </svg>", b) for a in names for b in names if a != b] + [(names[0], "is & so", names[1])]
    )


@pytest.fixture
def make_service(
    family: KnowledgeGraph, hostile: KnowledgeGraph, small_gamma: Gamma
) -> Iterator[Callable[..., Service]]:
    """Services with limits of one's own; they end with the test."""
    with ExitStack() as ends:

        def make(*, predictor: object = None, **limits: object) -> Service:
            graphs = HostedGraphs()
            graphs.add("family", family)
            graphs.add("hostile", hostile)
            model = NamedModel("small", "0", predictor or small_gamma, "a small model")  # type: ignore[arg-type]
            service = Service(model, graphs, Limits.parse({"grace_seconds": 5, **limits}))
            ends.callback(service.close)
            return service

        yield make


@pytest.fixture
def make_client(make_service: Callable[..., Service]) -> Iterator[MakeClient]:
    with ExitStack() as ends:

        def make(
            *, token: str | None = None, host: str = "127.0.0.1", base: str = BASE, **limits: object
        ) -> TestClient:
            app = create_app(make_service(**limits), host=host, token=token)
            client = TestClient(app, base_url=base, raise_server_exceptions=False)
            ends.callback(client.close)
            return client

        yield make


@pytest.fixture
def client(make_client: MakeClient) -> TestClient:
    return make_client()
