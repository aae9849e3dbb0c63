"""Endpoints and databases that answer nonsense, or drip for ever: one error, soon."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bolt import BoltServer
from gamma_kg import DataError
from gamma_kg.data import sparql
from gamma_kg.data.read import read_triples
from loopback import serving

PATIENCE = 3.0  # seconds that a slow server goes on; readers give up long before
IRI = {"type": "uri", "value": "http://e.org/a"}


@contextmanager
def raw_server(answer: Callable[[Callable[[bytes], object], threading.Event], object]) -> Iterator[int]:
    """A server that sends what it likes; the port."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            try:
                answer(self.request.sendall, over)
            except OSError:
                return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    with serving(server):
        yield int(server.server_address[1])
        over.set()


def drip(start: bytes, drop: bytes) -> Callable[[Callable[[bytes], object], threading.Event], None]:
    def answer(send: Callable[[bytes], object], over: threading.Event) -> None:
        send(start)
        for _ in range(int(PATIENCE / 0.05)):
            if over.wait(0.05):
                return
            send(drop)

    return answer


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
    ids=["a header without end", "always about to answer", "the size of a chunk without end"],
)
def test_an_endpoint_that_drips_anywhere_is_given_up(start: bytes, drop: bytes) -> None:
    with raw_server(drip(start, drop)) as port, pytest.raises(DataError, match=r"no answer within 0\.4 s"):
        read_triples(f"sparql:http://127.0.0.1:{port}/q", timeout=0.4, retries=0)


def test_a_redirect_to_no_address_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    said = b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n"
    with (
        raw_server(lambda send, _: send(said)) as port,
        pytest.raises(DataError, match=r"it redirects to http://\[, which is not followed"),
    ):
        read_triples(f"sparql:http://127.0.0.1:{port}/q")


def _page(*rows: dict[str, Any]) -> bytes:
    body = json.dumps({"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": rows}}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize(
    "row",
    [
        {"s": IRI},
        {"s": IRI, "p": IRI},
        {"s": IRI, "p": {"type": "literal", "value": "x"}, "o": IRI},
        {"s": IRI, "p": {"type": "bnode", "value": "x"}, "o": IRI},
        {"s": {"type": "literal", "value": "x"}, "p": IRI, "o": IRI},
    ],
)
def test_a_row_that_is_no_triple_is_refused(row: dict[str, Any]) -> None:
    with raw_server(lambda send, _: send(_page(row))) as port, pytest.raises(DataError, match=r"row 1 .* no triple"):
        read_triples(f"sparql:http://127.0.0.1:{port}/q")


def test_pages_that_come_round_again_have_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "MAX_TRIPLES", 9)  # else it would go on for a long time where this is not seen
    count = 0

    def answer(send: Callable[[bytes], object], over: threading.Event) -> None:
        nonlocal count
        count += 1
        send(_page({"s": IRI, "p": IRI, "o": {"type": "uri", "value": f"http://e.org/{count % 3}"}}))

    with raw_server(answer) as port, pytest.raises(DataError, match="the same page came twice"):
        read_triples(f"sparql:http://127.0.0.1:{port}/q")


class Nonsense(BoltServer):
    """Speaks Bolt, and answers what it is told to."""

    def __init__(self, rows: Callable[[int], list[list[Any]]], fields: str = "") -> None:
        super().__init__()
        self._rows, self._fields, self._asked = rows, fields, 0

    def answer(self, query: str, parameters: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
        self._asked += 1
        fields = self._fields or "id relation head head_names head_labels tail tail_names tail_labels"
        return fields.split(), self._rows(self._asked)


GOOD = ["5:x:1", "R", "4:x:1", {"name": "a"}, ["L"], "4:x:2", {"name": "b"}, ["L"]]


@pytest.mark.parametrize(
    ("column", "value"), [(0, None), (1, 7), (2, None), (3, ["x"]), (4, None), (4, [1]), (4, "L"), (6, None)]
)
def test_a_row_of_a_database_that_is_not_as_asked_is_refused(column: int, value: Any) -> None:
    pytest.importorskip("neo4j")
    server = Nonsense(lambda _: [[*GOOD[:column], value, *GOOD[column + 1 :]]])
    with serving(server), pytest.raises(DataError, match="is it a Neo4j database"):
        read_triples(server.url)


def test_a_database_with_other_columns_is_refused() -> None:
    pytest.importorskip("neo4j")
    server = Nonsense(lambda _: [["x"]], "a")
    with serving(server), pytest.raises(DataError, match="is it a Neo4j database"):
        read_triples(server.url)


def test_pages_of_a_database_that_come_round_again_have_no_end() -> None:
    pytest.importorskip("neo4j")
    server = Nonsense(lambda asked: [[f"5:x:{asked % 3}", *GOOD[1:]]] if asked < 50 else [])
    with serving(server), pytest.raises(DataError, match="the same page came twice"):
        read_triples(server.url, page_size=1)


def test_a_database_that_falls_silent_is_given_up() -> None:
    pytest.importorskip("neo4j")
    over = threading.Event()

    def wait(_: int) -> list[list[Any]]:
        over.wait(PATIENCE)
        return [GOOD]

    server = Nonsense(wait)
    with serving(server):
        with pytest.raises(DataError, match=r"no answer within 0\.5 s"):
            read_triples(server.url, timeout=0.5)
        over.set()
