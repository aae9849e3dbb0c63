"""Triples from a SPARQL endpoint, page by page, with a limit, a timeout and retries."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPException
from typing import IO, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

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
    offset, page, last = 0, 0, b""
    while True:
        size = options.page_size if options.limit is None else min(options.page_size, options.limit - offset)
        query = PAGE_QUERY.format(kept=kept, limit=size, offset=offset)
        rows, content = _page(url, query, tally)
        if rows and content == last:
            raise DataError(
                f"{url}: the same page came twice, so it does not understand OFFSET and has no end; ask for one page "
                f"(limit {size}), or use a dump"
            )
        last, page = content, page + 1
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
        return [(row["s"], cast(ox.NamedNode, row["p"]), row["o"]) for row in solutions], content
    except (SyntaxError, ValueError, AssertionError, KeyError) as error:
        start = content[:60].decode("utf-8", "replace")
        raise DataError(
            f"{url}: the answer is no SPARQL result table (it starts {start!r}); is it an endpoint?"
        ) from error


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
    end = time.monotonic() + timeout
    parts: list[bytes] = []
    size = 0
    with build_opener(_NoRedirects).open(request, timeout=timeout) as answer:
        while block := answer.read1(1 << 16):
            parts.append(block)
            size += len(block)
            if time.monotonic() > end:
                raise TimeoutError
            if size > MAX_PAGE_BYTES:
                limit = f"{MAX_PAGE_BYTES >> 20} MB"
                raise DataError(f"{request.full_url}: the answer is larger than {limit}; ask for smaller pages")
    return b"".join(parts)


class _NoRedirects(HTTPRedirectHandler):
    """Another address may be another server, inside the network of the reader: a person should choose it."""

    def redirect_request(self, *args: object) -> None:
        return None
