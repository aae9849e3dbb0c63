"""Triples from a SPARQL endpoint, page by page, with a limit, a timeout and retries."""

from __future__ import annotations

import contextlib
import hashlib
import io
import socket
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import IO, Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import pyoxigraph as ox

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.names import RdfNames
from gamma_kg.data.options import Tally
from gamma_kg.data.rdf import QuadCollector
from gamma_kg.errors import DataError

# Pages only fit together under one order; labels are wanted even when literals are not.
PAGE_QUERY = """SELECT ?s ?p ?o WHERE {{ ?s ?p ?o . {kept} }} ORDER BY ?s ?p ?o LIMIT {limit} OFFSET {offset}"""
ONLY_LINKS = "FILTER(!isLiteral(?o) || ?p IN ({names}))"
RESULTS = "application/sparql-results+json"
FIRST_WAIT_SECONDS = 0.5
# A page of ten thousand rows is a few megabytes: what is larger than this will not end.
MAX_PAGE_BYTES = 1 << 28
# An endpoint that has more is read with a limit, or from a dump.
MAX_TRIPLES = 100_000_000


def read_endpoint(url: str, encoder: TripleEncoder, tally: Tally) -> RdfNames:
    """Reads all triples of the endpoint's default graph, at most `options.limit` of them."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise DataError(f"a SPARQL endpoint is written sparql:https://host/path, got {url!r}")
    options = tally.options
    names = RdfNames(options.label_properties, options.languages)
    tally.files.append(url)
    collector = QuadCollector(encoder, tally, names)
    named_by = ", ".join(f"<{iri}>" for iri in names.properties)
    kept = "" if options.literals == "as-entities" else ONLY_LINKS.format(names=named_by)
    offset, page, seen = 0, 0, set[bytes]()
    while True:
        size = options.page_size if options.limit is None else min(options.page_size, options.limit - offset)
        query = PAGE_QUERY.format(kept=kept, limit=size, offset=offset)
        rows, content = _page(url, query, tally)
        digest = hashlib.sha256(content).digest()
        if rows and digest in seen:
            raise DataError(
                f"{url}: the same page came twice, so it does not understand OFFSET and has no end; ask for one page "
                f"(limit {size}), or use a dump"
            )
        seen.add(digest)
        page += 1
        # Labels of blank nodes hold within one answer: _:b0 of the next page is another node.
        collector.scope = f"page{page}-"
        for subject, predicate, object_ in rows:
            collector.add(subject, predicate, object_)
        offset += len(rows)
        # A page may come back short because the server has a lower limit of its own: only an empty one is the end.
        if not rows or offset == options.limit:
            break
        if offset >= MAX_TRIPLES:
            raise DataError(f"{url}: more than {MAX_TRIPLES:,} triples; say how many to read (limit), or use a dump")
    collector.flush()
    return names


def _page(url: str, query: str, tally: Tally) -> tuple[list[tuple[object, ox.NamedNode, object]], bytes]:
    content = _fetch(url, query, tally)
    try:
        solutions = ox.parse_query_results(cast(IO[bytes], io.BytesIO(content)), format=ox.QueryResultsFormat.JSON)
        assert isinstance(solutions, ox.QuerySolutions)
        rows = [(row["s"], cast(ox.NamedNode, row["p"]), row["o"]) for row in solutions]
    except (SyntaxError, ValueError, AssertionError, KeyError) as error:
        start = content[:60].decode("utf-8", "replace")
        raise DataError(
            f"{url}: the answer is no SPARQL result table (it starts {start!r}); is it an endpoint?"
        ) from error
    for number, (subject, predicate, object_) in enumerate(rows, 1):
        if object_ is None or isinstance(subject, ox.Literal | None) or not isinstance(predicate, ox.NamedNode):
            told = " ".join("nothing" if term is None else str(term)[:80] for term in (subject, predicate, object_))
            raise DataError(f"{url}: row {number} of the answer is no triple ({told}); is it an endpoint?")
    return rows, content


def _fetch(url: str, query: str, tally: Tally) -> bytes:
    request = Request(
        url,
        data=urlencode({"query": query}).encode(),
        headers={"Accept": RESULTS, "User-Agent": "gamma-kg", "Content-Type": "application/x-www-form-urlencoded"},
    )
    return with_retries(request, tally.options.timeout, tally.options.retries)


def with_retries(request: Request, timeout: float, retries: int) -> bytes:
    """One request, again after a growing wait if the server is busy or silent."""
    wait, url = FIRST_WAIT_SECONDS, request.full_url
    for attempt in range(retries + 1):
        try:
            return send(request, timeout)
        except HTTPError as error:
            reason = f"HTTP {error.code} {error.reason}"
            if 300 <= error.code < 400:
                reason = f"it redirects to {error.headers.get('Location')}, which is not followed; name that address"
            may_retry = error.code in (408, 425, 429) or error.code >= 500
            error.close()
        except (URLError, TimeoutError, ConnectionError, HTTPException, socket.gaierror) as error:
            cause = error.reason if isinstance(error, URLError) else error
            timed_out = isinstance(cause, TimeoutError)
            reason = f"no answer within {timeout:g} s" if timed_out else str(cause) or type(cause).__name__
            may_retry = True
        if not may_retry or attempt == retries:
            raise DataError(
                f"{url}: {reason} (attempt {attempt + 1}, the last); check the address, or ask for smaller pages"
            )
        time.sleep(wait)
        wait *= 2
    raise AssertionError("the loop returns or raises")


def send(request: Request, timeout: float) -> bytes:
    """The whole answer, within `timeout` seconds in all, however slowly it drips; redirects are errors."""
    parts: list[bytes] = []
    size = 0
    with _Deadline(timeout) as deadline:
        with build_opener(_NoRedirects, deadline.http, deadline.https).open(request, timeout=timeout) as answer:
            while block := answer.read1(1 << 16):
                parts.append(block)
                size += len(block)
                if deadline.has_passed:
                    raise TimeoutError
                if size > MAX_PAGE_BYTES:
                    limit = f"{MAX_PAGE_BYTES >> 20} MB"
                    raise DataError(f"{request.full_url}: the answer is larger than {limit}; ask for smaller pages")
    return b"".join(parts)


class _Deadline:
    """Hangs up after some seconds, wherever the answer is then, and makes of what follows a `TimeoutError`.

    A socket's own timeout starts anew with every byte: one a second, in a header that never ends, would last for days.
    """

    def __init__(self, seconds: float) -> None:
        self.has_passed = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._hang_up)
        self._timer.daemon = True
        self.http, self.https = _timed(HTTPHandler, HTTPConnection, self), _timed(HTTPSHandler, HTTPSConnection, self)

    def watch(self, sock: socket.socket) -> None:
        self._sockets.append(sock)
        if self.has_passed:
            self._hang_up()

    def _hang_up(self) -> None:
        self.has_passed = True
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._timer.cancel()
        if self.has_passed and isinstance(error, Exception | None) and not isinstance(error, DataError | HTTPError):
            raise TimeoutError from error


def _timed(handler: type[Any], connection: type[HTTPConnection], deadline: _Deadline) -> Any:
    """A handler of urllib whose connections are watched by the deadline from their first byte on."""

    class Watched(connection):  # type: ignore[valid-type,misc]
        def connect(self) -> None:
            super().connect()
            deadline.watch(self.sock)

    class Handler(handler):  # type: ignore[misc]
        def do_open(self, http_class: object, request: Request, **options: Any) -> HTTPResponse:
            return cast(HTTPResponse, super().do_open(Watched, request, **options))

    return Handler


class _NoRedirects(HTTPRedirectHandler):
    """Another address may be another server, inside the network of the reader: a person should choose it."""

    def http_error_302(self, *args: object) -> None:
        return None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]
