"""Triples from a SPARQL endpoint, page by page, with a limit, a timeout and retries."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPException
from typing import IO, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

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
    offset = 0
    while True:
        size = options.page_size if options.limit is None else min(options.page_size, options.limit - offset)
        query = PAGE_QUERY.format(kept=kept, limit=size, offset=offset)
        rows = _page(url, query, tally)
        for subject, predicate, object_ in rows:
            collector.add(subject, predicate, object_)
        offset += len(rows)
        # A page may come back short because the server has a lower limit of its own: only an empty one is the end.
        if not rows or offset == options.limit:
            break
    collector.flush()
    return names


def _page(url: str, query: str, tally: Tally) -> list[tuple[object, ox.NamedNode, object]]:
    content = _fetch(url, query, tally)
    try:
        solutions = ox.parse_query_results(cast(IO[bytes], io.BytesIO(content)), format=ox.QueryResultsFormat.JSON)
        assert isinstance(solutions, ox.QuerySolutions)
        return [(row["s"], cast(ox.NamedNode, row["p"]), row["o"]) for row in solutions]
    except (SyntaxError, ValueError, AssertionError, KeyError) as error:
        start = content[:60].decode("utf-8", "replace")
        raise DataError(
            f"{url}: the answer is no SPARQL result table (it starts {start!r}); is it an endpoint?"
        ) from error


def _fetch(url: str, query: str, tally: Tally) -> bytes:
    """One request, again after a growing wait if the server is busy or silent."""
    options = tally.options
    request = Request(
        url,
        data=urlencode({"query": query}).encode(),
        headers={"Accept": RESULTS, "User-Agent": "gamma-kg", "Content-Type": "application/x-www-form-urlencoded"},
    )
    wait = FIRST_WAIT_SECONDS
    for attempt in range(options.retries + 1):
        try:
            with urlopen(request, timeout=options.timeout) as answer:
                return cast(bytes, answer.read())
        except HTTPError as error:
            reason = f"HTTP {error.code} {error.reason}"
            may_retry = error.code in (408, 425, 429) or error.code >= 500
            error.close()
        except (URLError, TimeoutError, ConnectionError, HTTPException, socket.gaierror) as error:
            cause = error.reason if isinstance(error, URLError) else error
            timed_out = isinstance(cause, TimeoutError)
            reason = f"no answer within {options.timeout:g} s" if timed_out else str(cause) or type(cause).__name__
            may_retry = True
        if not may_retry or attempt == options.retries:
            raise DataError(
                f"{url}: {reason} (attempt {attempt + 1}, the last); check the address, or ask for smaller pages"
            )
        time.sleep(wait)
        wait *= 2
    raise AssertionError("the loop returns or raises")
