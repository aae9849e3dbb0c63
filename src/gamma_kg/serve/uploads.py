"""A graph that a caller sends: kept in the server's own temporary folder, bounded in bytes and facts, then read.

The caller's file name only gives the title and the format; no path of the caller's is ever opened. Packed files are
refused, whatever they are called: what they hold has no bound. One file is read at a time, since each takes memory.
"""

from __future__ import annotations

import secrets
from pathlib import PurePosixPath, PureWindowsPath

from fastapi import UploadFile

from gamma_kg.data.streams import GZIP_MAGIC, PARQUET_MAGIC, ZSTD_MAGIC
from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.serve.hosted import HostedGraph
from gamma_kg.serve.service import Service

KINDS = {
    "Tables": (".tsv", ".csv", ".txt", ".jsonl", ".parquet"),
    "RDF": (".nt", ".nq", ".ttl", ".trig", ".rdf"),
    "ontologies": (".owl", ".obo"),
}
ENDINGS = tuple(ending for some in KINDS.values() for ending in some)
CHUNK = 1 << 20
LONGEST_TITLE = 80


async def take_in(service: Service, file: UploadFile) -> HostedGraph:
    """Stores, reads and hosts an uploaded file of facts."""
    _check_room(service)
    title, ending = name_and_ending(file.filename or "")
    path = service.folder / f"{secrets.token_hex(8)}{ending}"
    try:
        with path.open("wb") as stored:
            while chunk := await file.read(CHUNK):
                stored.write(chunk)
        kg = await service.in_time(_read_in_turn(service, str(path), title + ending))
    finally:
        path.unlink(missing_ok=True)
    _check_room(service)  # others may have come while this one was read
    return service.host(title, kg)


async def _read_in_turn(service: Service, path: str, shown: str) -> KnowledgeGraph:
    import anyio.to_thread

    async with service.reading:
        _check_room(service)
        return await anyio.to_thread.run_sync(_read, path, shown, service.limits.facts)


def _check_room(service: Service) -> None:
    if len(service.graphs) >= service.limits.graphs:
        raise DataError(f"{service.limits.graphs} graphs are held already; remove an uploaded one first")


def name_and_ending(filename: str) -> tuple[str, str]:
    """Title and format of an uploaded file, from the last part of its name only."""
    last = PurePosixPath(PureWindowsPath(filename).name).name
    ending = PurePosixPath(last).suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"a file of facts is wanted, with one of the endings {' '.join(ENDINGS)}; got {last[:80]!r}")
    title = "".join(c if c.isprintable() else " " for c in PurePosixPath(last).stem).strip()
    return title[:LONGEST_TITLE] or "graph", ending


def _read(path: str, shown: str, most: int) -> KnowledgeGraph:
    # By their first bytes, as the readers know them, and not by the caller's word.
    with open(path, "rb") as file:
        start = file.read(4)
    if start.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
        raise DataError(f"{shown}: packed files are not taken; unpack it first")
    if start.startswith(PARQUET_MAGIC):
        _check_rows(path, shown, most)
    try:
        kg = KnowledgeGraph.from_file(path, progress=False)
    except DataError as error:
        # The caller knows the file by its own name.
        said, stored = str(error).replace(path, shown), PurePosixPath(path)
        raise DataError(said.replace(stored.name, shown).replace(stored.stem, PurePosixPath(shown).stem)) from error
    if not 1 <= kg.num_triples <= most:
        raise DataError(f"{shown}: 1 to {most:,} facts are taken, found {kg.num_triples:,}")
    kg.edges, kg.relation_graph  # noqa: B018
    return kg


def _check_rows(path: str, shown: str, most: int) -> None:
    """Parquet can hold far more rows than bytes; its footer says how many."""
    import polars as pl

    from gamma_kg.data.frames import refusing_damage

    with refusing_damage(shown):
        rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    if rows > most:
        raise DataError(f"{shown}: 1 to {most:,} facts are taken, found {rows:,}")
