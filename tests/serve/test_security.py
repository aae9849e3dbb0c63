"""Who may ask, how much, and that names stay text wherever they appear."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest
from clients import BASE, HOSTILE, MakeClient
from fastapi.testclient import TestClient

from gamma_kg import ConfigError
from gamma_kg.serve.observing import JsonLines
from gamma_kg.serve.security import Token, check_binding

TOKEN = "a-token-of-some-length"


def test_others_than_loopback_want_a_token_of_some_length() -> None:
    check_binding("127.0.0.1", None)
    check_binding("0.0.0.0", TOKEN)
    with pytest.raises(ConfigError, match="give a --token"):
        check_binding("0.0.0.0", None)
    with pytest.raises(ConfigError, match="at least 16"):
        check_binding("127.0.0.1", "short")


def test_without_the_token_only_health_and_the_sign_in_page_answer(make_client: MakeClient) -> None:
    client = make_client(token=TOKEN, host="0.0.0.0")
    for path in ("/v1/graphs", "/metrics", "/g/family", "/docs", "/v1/openapi.json"):
        assert client.get(path).status_code == 401, path
        assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401, path
        assert client.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200, path
    for path in ("/healthz", "/readyz", "/sign-in", "/static/page.css"):
        assert client.get(path).status_code == 200, path


def test_a_person_signs_in_once_and_gets_a_cookie_that_is_not_the_token(make_client: MakeClient) -> None:
    client = make_client(token=TOKEN, host="0.0.0.0")
    page = client.get("/g/family", headers={"Accept": "text/html"}, follow_redirects=False)
    assert page.status_code == 303 and page.headers["location"] == "/sign-in"
    assert client.post("/sign-in", data={"secret": "wrong"}).status_code == 401
    answer = client.post("/sign-in", data={"secret": TOKEN}, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303 and "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    assert client.get("/g/family").status_code == 200


def test_tokens_are_compared_as_digests() -> None:
    token = Token(TOKEN)
    assert (
        token.accepts(TOKEN)
        and not token.accepts(TOKEN + "x")
        and not token.accepts("")
        and not token.accepts("\ud800")
    )
    assert token.accepts_cookie(token.cookie()) and not token.accepts_cookie("é")


def test_a_server_on_loopback_answers_to_loopback_names_only(make_client: MakeClient) -> None:
    client = make_client(base="http://evil.example")
    assert client.get("/v1/graphs").status_code == 421
    for host in ("localhost:8765", "127.0.0.1", "[::1]:80"):
        assert client.get("/v1/graphs", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}, {"Origin": "http://["}],
)
def test_other_sites_can_change_nothing(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/g/family/missing", data={}, headers=headers).status_code == 403
    assert client.post("/v1/graphs", files={"file": ("a.tsv", b"a\tb\tc")}, headers=headers).status_code == 403
    own = {"Origin": BASE} if "Origin" in headers else {"Sec-Fetch-Site": "same-origin"}
    assert client.post("/g/family/missing", data={}, headers=own, follow_redirects=False).status_code == 303


def test_no_answer_allows_other_origins_and_all_have_a_strict_policy(client: TestClient) -> None:
    for path in ("/v1/graphs", "/g/family", "/nowhere", "/static/page.js"):
        headers = client.get(path, headers={"Origin": "http://evil.example"}).headers
        assert "access-control-allow-origin" not in headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_answers_are_never_kept_and_the_pages_own_files_are_asked_for_again(client: TestClient) -> None:
    assert client.get("/g/family", headers={"Accept": "text/html"}).headers["cache-control"] == "no-store"
    style = client.get("/static/page.css")
    assert style.headers["cache-control"] == "no-cache"
    again = client.get("/static/page.css", headers={"If-None-Match": style.headers["etag"]})
    assert again.status_code == 304


def test_pages_have_no_inline_script_or_style(client: TestClient) -> None:
    for path in ("/g/family", "/g/family/ask?head=Ann&relation=mother+of", "/g/family/entity?name=Ann", "/docs",
                 "/g/family/why?head=Bob&relation=sibling+of&tail=Cleo", "/graphs", "/g/family/missing",
                 "/g/family/question?head=Ann&relation=mother+of&tail=?x"):  # fmt: skip
        page = client.get(path)
        assert page.status_code == 200, path
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script(?! src=\"/static/page.js\")", page.text), (
            path
        )


def test_large_bodies_are_refused_with_and_without_a_stated_length(make_client: MakeClient) -> None:
    client = make_client(body_bytes=1000, upload_bytes=3000)
    path = "/v1/graphs/family/predict"
    assert client.post(path, content=b"x" * 1001).status_code == 413

    def chunks() -> object:
        for _ in range(20):
            yield b" " * 100

    assert client.post(path, content=chunks()).status_code == 413
    assert client.post("/v1/graphs", files={"file": ("a.tsv", b"x" * 4000)}).status_code == 413
    assert client.post("/v1/graphs", files={"file": ("a.tsv", b"a\tb\tc\n" * 300)}).status_code == 201


def test_a_graph_with_too_many_facts_or_one_too_many_is_refused(make_client: MakeClient) -> None:
    client = make_client(facts=5, graphs=3)
    facts = b"".join(b"a%d\tr\tb\n" % i for i in range(6))
    assert "1 to 5 facts" in client.post("/v1/graphs", files={"file": ("a.tsv", facts)}).json()["detail"]
    assert client.post("/v1/graphs", files={"file": ("a.tsv", facts[:14])}).status_code == 201
    assert "3 graphs are held" in client.post("/v1/graphs", files={"file": ("a.tsv", facts[:14])}).json()["detail"]


def test_hostile_names_are_text_on_every_page_and_in_every_file(client: TestClient) -> None:
    fact = {"head": HOSTILE, "relation": "links </svg>", "tail": "=1+1"}
    client.put("/v1/graphs/hostile/decisions", json={**fact, "head": "=1+1", "tail": HOSTILE, "verdict": "accepted"})
    pages = (
        ("/g/hostile", {}),
        ("/g/hostile/entity", {"name": HOSTILE}),
        ("/g/hostile/relation", {"name": "links </svg>"}),
        ("/g/hostile/ask", {"head": HOSTILE, "relation": "links </svg>", "known": "include"}),
        ("/g/hostile/why", fact),
        ("/g/hostile/question", {"head": HOSTILE, "relation": "links </svg>", "tail": "?x"}),
        ("/g/hostile/question", {"sparql": HOSTILE, "find": HOSTILE}),
        ("/g/hostile/search", {"q": "<script>"}),
        ("/g/hostile/missing", {"entity": HOSTILE}),
        ("/g/hostile/ask", {"head": HOSTILE + "?", "relation": "<b>"}),
    )
    for path, parameters in pages:
        text = client.get(path, params=parameters).text
        assert "<script>alert" not in text and "<img src=x" not in text and "&lt;script&gt;" in text, path
        assert text.count("</svg>") == text.count("<svg"), path
        assert "\u202e" not in text and "\x1b" not in text and "49" not in re.sub(r"[\d.]{4,}", "", text), path
    csv = client.get("/v1/graphs/hostile/accepted/csv").text
    assert "'=1+1" in csv


def test_log_lines_can_not_be_forged() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    record = logging.LogRecord("x", logging.INFO, "", 0, 'a\n{"level": "forged"}\x1b[31m', None, None)
    handler.emit(record)
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["level"] == "info" and line.isascii() and "\x1b" not in line


def test_a_failure_inside_tells_the_caller_nothing(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = make_client()

    def fail(*args: object) -> None:
        raise RuntimeError("secret place /home/somebody")

    monkeypatch.setattr("gamma_kg.serve.views.graph_info", fail)
    answer = client.get("/v1/graphs/family")
    assert answer.status_code == 500 and "secret" not in answer.text and "Traceback" not in answer.text


def test_whatever_can_be_got_has_a_head_too(client: TestClient) -> None:
    for path in ("/healthz", "/g/family", "/v1/graphs", "/static/page.css"):
        assert client.head(path).status_code == 200, path
    assert client.head("/v1/graphs/none").status_code == 404
