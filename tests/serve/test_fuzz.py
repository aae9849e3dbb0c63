"""The server against its own OpenAPI document: whatever comes, the answer is one that the document describes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from clients import MakeClient
from hypothesis import HealthCheck, given, settings

from gamma_kg.serve.app import create_app
from gamma_kg.serve.service import Service


def test_what_schemathesis_thinks_of_is_answered_as_documented(make_service: Callable[..., Service]) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="needs the extra `dev`: pip install -e .[dev]")
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    app = create_app(make_service(seconds=20), host="testserver")
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", app)
    failures = []
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=12, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def is_answered_as_documented(case: Any) -> None:
            # What is well formed may still name what is not there, or be no file of facts: no schema can say that.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        try:
            is_answered_as_documented()
        except (Exception, BaseExceptionGroup) as error:
            failures.append(f"{operation.label}: {error}")
    assert not failures, "\n\n".join(failures)[:6000]


def test_a_thousand_malformed_requests_get_only_4xx_and_no_traceback(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    client, generator = make_client(), random.Random(0)
    good = json.dumps({"queries": [{"head": "Ann", "relation": "mother of"}]})
    for number in range(1000):
        way, body, headers = number % 5, good, {"Content-Type": "application/json"}
        if way == 0:  # cut off
            body = good[: generator.randrange(len(good) - 1)]
        elif way == 1:  # a character that does not belong there
            at = generator.randrange(len(good))
            body = good[:at] + generator.choice("\x00}{][,:\\\ud800é") + good[at:]
        elif way == 2:  # of another kind
            body = json.dumps(
                {"queries": generator.choice([1, None, "x", {}, [[]], [1], [{"head": {}}], [{"head": ""}]])}
            )
        elif way == 3:  # in another language
            headers = {"Content-Type": generator.choice(["text/plain", "application/xml", "multipart/form-data", "x"])}
        else:  # for something else
            body = json.dumps({"queries": [{"head": f"nobody {number}", "relation": "mother of"}]})
        answer = client.post(
            "/v1/graphs/family/predict", content=body.encode("utf-8", "surrogatepass"), headers=headers
        )
        assert 400 <= answer.status_code < 500, (number, body, answer.status_code)
        assert answer.headers["content-type"] == "application/problem+json"
    assert not [record for record in caplog.records if record.exc_info]
