"""Triples from a real SPARQL server on loopback: pyoxigraph's store behind Python's own HTTP server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from gamma_kg import Gamma
from gamma_kg.cli import main
from gamma_kg.data import sparql
from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError
from loopback import Endpoint, serving

NUM_LINKS = 25


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr(sparql, "FIRST_WAIT_SECONDS", 0.01)
    lines = [f"e:n{i} e:next e:n{i + 1} ." for i in range(NUM_LINKS)]
    lines += ['e:n0 rdfs:label "Start" .', "e:n1 e:age 5 ."]
    prefixes = "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
    server = Endpoint(prefixes + "\n".join(lines))
    with serving(server):
        yield server
        server.never.set()


def test_all_links_are_read_in_pages(endpoint: Endpoint) -> None:
    encoded = read_triples(endpoint.url, page_size=10)
    assert len(encoded.triples) == NUM_LINKS
    assert endpoint.requests == 4
    assert encoded.entities.id("Start") == encoded.entities.id("http://e.org/n0")
    assert encoded.report.literals_skipped == 1


def test_literals_come_along_when_asked(endpoint: Endpoint) -> None:
    encoded = read_triples(endpoint.url, literals="as-entities")
    assert len(encoded.triples) == NUM_LINKS + 2


def test_the_limit_is_kept(endpoint: Endpoint) -> None:
    encoded = read_triples(endpoint.url, page_size=4, limit=10)
    assert len(encoded.triples) + encoded.report.literals_skipped == 10


def test_a_busy_server_is_asked_again(endpoint: Endpoint) -> None:
    endpoint.failures = 2
    assert len(read_triples(endpoint.url, retries=2).triples) == NUM_LINKS


def test_a_server_that_stays_busy_is_an_error(endpoint: Endpoint) -> None:
    endpoint.failures = 9
    with pytest.raises(DataError, match=r"HTTP 503 Service Unavailable \(attempt 2, the last\)"):
        read_triples(endpoint.url, retries=1)


def test_a_silent_server_times_out(endpoint: Endpoint) -> None:
    endpoint.is_silent = True
    with pytest.raises(DataError, match=r"no answer within 0\.1 s"):
        read_triples(endpoint.url, timeout=0.1, retries=0)


def test_an_answer_that_drips_for_ever_times_out(endpoint: Endpoint) -> None:
    endpoint.drips = True
    with pytest.raises(DataError, match=r"no answer within 0\.2 s"):
        read_triples(endpoint.url, timeout=0.2, retries=0)


def test_an_answer_that_is_too_large_is_refused(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "MAX_PAGE_BYTES", 1000)
    with pytest.raises(DataError, match="the answer is larger than"):
        read_triples(endpoint.url)


def test_a_redirect_is_named_and_not_followed(endpoint: Endpoint) -> None:
    endpoint.redirect = "http://169.254.169.254/secret"
    with pytest.raises(DataError, match=r"redirects to http://169\.254\.169\.254/secret, which is not followed"):
        read_triples(endpoint.url)
    assert endpoint.requests == 1


def test_a_server_without_offset_does_not_go_on_for_ever(endpoint: Endpoint) -> None:
    endpoint.body = endpoint.store.query("SELECT ?s ?p ?o { ?s ?p ?o }").serialize(format=ox.QueryResultsFormat.JSON)
    with pytest.raises(DataError, match="the same page came twice"):
        read_triples(endpoint.url)


def test_a_server_that_never_ends_is_left(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "MAX_TRIPLES", 5)
    with pytest.raises(DataError, match="more than 5 triples; say how many to read"):
        read_triples(endpoint.url, page_size=5)


def test_blank_nodes_of_two_pages_are_not_merged(endpoint: Endpoint) -> None:
    page = '{"head":{"vars":["s","p","o"]},"results":{"bindings":[%s]}}'
    row = '{"s":{"type":"bnode","value":"b0"},"p":{"type":"uri","value":"x:p"},"o":{"type":"uri","value":"x:%s"}}'
    endpoint.bodies = [(page % rows).encode() for rows in (row % "a", row % "b", "")]
    encoded = read_triples(endpoint.url, page_size=1)
    assert len({head for head, _, _ in encoded.triples.tolist()}) == 2


def test_a_page_that_is_no_result_is_an_error(endpoint: Endpoint) -> None:
    endpoint.body = b"<html>hello</html>"
    with pytest.raises(DataError, match=r"is no SPARQL result table .*<html>"):
        read_triples(endpoint.url)


def test_no_server_and_no_url_are_errors() -> None:
    with pytest.raises(DataError, match="Connection refused"):
        read_triples("sparql:http://127.0.0.1:9/", retries=0)
    with pytest.raises(DataError, match="is written sparql:https://host/path"):
        read_triples("sparql:somewhere")


def test_the_command_line_predicts_on_an_endpoint(
    endpoint: Endpoint,
    tmp_path: Path,
    small_gamma: Gamma,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small_gamma.save(tmp_path / "model.safetensors")
    options = ["--head", "Start", "--relation", "e:next", "--model", str(tmp_path / "model.safetensors"), "--json"]
    monkeypatch.setattr("sys.argv", ["gamma", "predict", endpoint.url, *options, "--top-k", "2", "--limit", "20"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["head"] for row in rows] == ["Start", "Start"]
