"""Facts as a file to keep, written by the writers of the command line."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from fastapi.responses import Response

from gamma_kg.io.rows import write_rows
from gamma_kg.serve.hosted import HostedGraph
from gamma_kg.serve.service import Service

Format = Literal["tsv", "csv", "jsonl", "parquet", "nt"]
MEDIA_TYPES: dict[str, str] = {
    "tsv": "text/tab-separated-values; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "nt": "application/n-triples",
}


def download(
    service: Service, graph: HostedGraph, rows: Iterable[Mapping[str, Any]], kind: Format, *, asserted: bool = False
) -> Response:
    """A response that a browser saves as a file; `asserted` writes RDF facts as facts, not as statements about them."""
    path = service.folder / f"{secrets.token_hex(8)}.{kind}"
    try:
        write_rows(path, rows, graph.kg, asserted=asserted and kind == "nt")
        body = path.read_bytes()
    finally:
        path.unlink(missing_ok=True)
    name = f"{graph.id}-facts.{kind}"
    return Response(
        body, media_type=MEDIA_TYPES[kind], headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
