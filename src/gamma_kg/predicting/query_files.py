"""Many queries from a file, answered in blocks; a run that was stopped goes on where it ended.

A query is a row (head, relation, tail) of which one cell is empty or `?`; a row of two cells asks for the tail.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gamma_kg.data.columns import ROLES, by_header_names
from gamma_kg.data.formats import find_format
from gamma_kg.data.frames import refusing_damage
from gamma_kg.data.options import ReadOptions
from gamma_kg.data.streams import Input, line_chunks, open_input, refuse_foreign
from gamma_kg.errors import DataError, UnknownNameError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.io.journal import Journal
from gamma_kg.io.rows import check_ending, write_rows
from gamma_kg.predicting.fingerprint import run_fingerprint
from gamma_kg.predicting.predictor import Predictor, Query

ASKED = ("", "?", None)
BLOCK_QUERIES = 64


def read_queries(path: str | Path) -> list[tuple[str, Query]]:
    """(where it stands, query) for every row of a TSV, CSV, JSON lines or Parquet file, or `-`."""
    file = None if str(path) == "-" else Path(path)
    with open_input(file, lambda num_bytes: None) as opened:
        kind = find_format(opened, file, ReadOptions())
        if kind == "parquet":
            frame = _parquet(opened)
            rows = [(f"{opened.name} row {i}", list(row)) for i, row in enumerate(frame.rows(), 1)]
            rows.insert(0, (opened.name, list(frame.columns)))
        else:
            refuse_foreign(opened)
            rows = list(_json_rows(opened) if kind == "jsonl" else _text_rows(opened, kind))
    order: Sequence[int] | None = None
    if rows:
        first = [str(cell) for cell in rows[0][1]]
        order = by_header_names(first) if len(first) >= 3 else None
        is_pair_header = [cell.strip().lower() for cell in first] == ["head", "relation"]
        if order is not None or is_pair_header or kind == "parquet":
            rows = rows[1:]
    queries = [(where, _query(where, cells, order)) for where, cells in rows]
    if not queries:
        raise DataError(f"{path}: no queries found; expected rows of head, relation, tail with one of them empty or ?")
    return queries


def answer_queries(
    model: Predictor,
    kg: KnowledgeGraph,
    queries: Sequence[tuple[str, Query]],
    out: str | Path,
    *,
    top_k: int = 10,
    include_known: bool = False,
    progress: Callable[[int, int], None] | None = None,
    memory: str | int | None = None,
) -> int:
    """Answers all queries and writes `out` (see `gamma_kg.io.rows`); returns the number of rows.

    What is done stands in `out`.progress until the end: the same call goes on from there.
    """
    out = Path(out)
    check_ending(out)
    for where, query in queries:
        check_query(kg, query, where)
    options = {"top_k": top_k, "include_known": include_known, "queries": [list(query) for _, query in queries]}
    journal = Journal(out.with_name(out.name + ".progress"), run_fingerprint(model, kg, **options))
    done: list[list[dict[str, Any]]] = [rows for block in journal.blocks for rows in block["answers"]]
    try:
        while len(done) < len(queries):
            if progress is not None:
                progress(len(done), len(queries))
            block = [query for _, query in queries[len(done) : len(done) + BLOCK_QUERIES]]
            answers: list[list[dict[str, Any]]] = [[] for _ in block]
            for position, predictions in model.predict_many(
                kg, block, top_k=top_k, include_known=include_known, memory=memory
            ):
                answers[position] = [
                    {
                        "head": p.head, "relation": p.relation, "tail": p.tail, "asked": _asked(block[position]),
                        "rank": rank, "probability": p.probability, "score": p.score, "known": p.known,
                    }
                    for rank, p in enumerate(predictions, 1)
                ]  # fmt: skip
            journal.add({"answers": answers})
            done.extend(answers)
    except BaseException:
        journal.close()
        raise
    if progress is not None:
        progress(len(done), len(queries))
    count = write_rows(out, (row for rows in done for row in rows), kg)
    journal.remove()
    return count


def check_query(kg: KnowledgeGraph, query: Query, where: str) -> None:
    """Refuses a query whose names are unknown, naming where it stands."""
    head, relation, tail = query
    try:
        for entity in (head, tail):
            if entity is not None:
                kg.entity_id(entity)
        if relation is not None:
            kg.relation_id(relation)
    except UnknownNameError as error:
        raise DataError(f"{where}: {error}") from error


def _parquet(opened: Input) -> pl.DataFrame:
    with refusing_damage(opened.name):
        return pl.read_parquet(io.BytesIO(opened.stream.read()))


def _asked(query: Query) -> str:
    return ROLES[query.index(None)]


def _query(where: str, cells: Sequence[Any], order: Sequence[int] | None) -> Query:
    if order is not None and len(cells) > max(order):
        cells = [cells[i] for i in order]
    if len(cells) == 2:
        cells = [*cells, None]
    if len(cells) != 3:
        raise DataError(f"{where}: expected head, relation and tail (one of them empty or ?), found {len(cells)} cells")
    head, relation, tail = (None if cell in ASKED else str(cell) for cell in cells)
    if [head, relation, tail].count(None) != 1:
        raise DataError(f"{where}: exactly one of head, relation and tail must be empty or ?, got {list(cells)}")
    return head, relation, tail


def _text_rows(opened: Input, kind: str) -> Iterator[tuple[str, list[str]]]:
    for first, chunk in line_chunks(opened):
        text = io.StringIO(chunk.decode(), newline="")
        if kind == "csv":
            for number, row in enumerate(csv.reader(text, skipinitialspace=True), first):
                if row:
                    yield f"{opened.name} line {number}", [cell.strip() for cell in row]
        else:
            for number, line in enumerate(text, first):
                if line.strip():
                    yield f"{opened.name} line {number}", line.rstrip("\r\n").split("\t")


def _json_rows(opened: Input) -> Iterator[tuple[str, list[Any]]]:
    for first, chunk in line_chunks(opened):
        for number, line in enumerate(chunk.splitlines(), first):
            where = f"{opened.name} line {number}"
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{where}: not JSON ({error})") from error
            if isinstance(row, dict):
                row = [row.get(role) for role in ROLES]
            if not isinstance(row, list):
                raise DataError(f"{where}: expected an object or array, found {type(row).__name__}")
            yield where, row
