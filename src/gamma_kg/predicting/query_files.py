"""Many queries from a file, answered in blocks; a run that was stopped goes on where it ended.

A query is a row (head, relation, tail) of which one cell is empty or `?`; a row of two cells asks for the tail.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gamma_kg.data.columns import ROLES, by_header_names
from gamma_kg.data.formats import find_format
from gamma_kg.data.frames import refusing_damage, scan_parquet
from gamma_kg.data.lines import line_chunks
from gamma_kg.data.options import ReadOptions
from gamma_kg.data.streams import Input, open_input, refuse_foreign
from gamma_kg.errors import DataError, UnknownNameError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.io.journal import Journal
from gamma_kg.io.rows import check_ending, write_rows
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.fingerprint import run_fingerprint
from gamma_kg.predicting.prediction import Prediction, Query
from gamma_kg.predicting.predictor import Predictor

ASKED = ("", "?", None)
BLOCK_QUERIES = 64


def read_queries(path: str | Path, complaints: list[str] | None = None) -> list[tuple[str, Query]]:
    """(where it stands, query) for every row of a TSV, CSV, JSON lines or Parquet file, or `-`.

    The first bad line is an error, unless there is a list for `complaints`: then it is left out and said there.
    """
    file = None if str(path) == "-" else Path(path)
    queries: list[tuple[str, Query]] = []
    order: Sequence[int] | None = None
    with open_input(file, lambda num_bytes: None) as opened:
        kind = find_format(opened, file, ReadOptions())
        for at, (where, cells) in enumerate(_rows(opened, kind, complaints)):
            if at == 0:
                first = [str(cell) for cell in cells]
                order = by_header_names(first) if len(first) >= 3 else None
                is_pair_header = [cell.strip().lower() for cell in first] == ["head", "relation"]
                if order is not None or is_pair_header or kind == "parquet":
                    continue
            try:
                queries.append((where, _query(where, cells, order)))
            except DataError as error:
                _bad(error, complaints)
    if not queries:
        skipped = f" ({len(complaints)} bad lines skipped, first: {complaints[0]})" if complaints else ""
        raise DataError(
            f"{path}: no queries found{skipped}; expected rows of head, relation, tail with one of them empty or ?"
        )
    return queries


def known_queries(
    kg: KnowledgeGraph, queries: Sequence[tuple[str, Query]], complaints: list[str] | None = None
) -> list[tuple[str, Query]]:
    """The queries whose names the graph knows; an unknown name is a bad line."""
    known = []
    for where, query in queries:
        try:
            check_query(kg, query, where)
            known.append((where, query))
        except DataError as error:
            _bad(error, complaints)
    if not known:
        raise DataError(f"none of the {len(queries)} queries has names of this graph; first: {(complaints or [''])[0]}")
    return known


def _bad(error: DataError, complaints: list[str] | None) -> None:
    if complaints is None:
        raise error
    complaints.append(str(error))


def answer_queries(
    model: Predictor,
    kg: KnowledgeGraph,
    queries: Sequence[tuple[str, Query]],
    out: str | Path,
    how: AnswerOptions | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    asserted: bool = False,
    **options: Any,
) -> int:
    """Answers all queries and writes `out` (see `gamma_kg.io.rows`); returns the number of rows.

    The options are those of `how`, or given one by one. What is done stands in `out`.progress until the end: the same
    call goes on from there.
    """
    how = replace(how or AnswerOptions(), **options)
    out = Path(out)
    check_ending(out, asserted=asserted)
    for where, query in queries:
        check_query(kg, query, where)
    asked = [list(query) for _, query in queries]
    more = {"top_k": how.top_k, "include_known": how.include_known, "queries": asked}
    journal = Journal(out.with_name(out.name + ".progress"), run_fingerprint(model, kg, how, **more))
    done: list[list[dict[str, Any]]] = [rows for block in journal.blocks for rows in block["answers"]]
    try:
        while len(done) < len(queries):
            if progress is not None:
                progress(len(done), len(queries))
            block = [query for _, query in queries[len(done) : len(done) + BLOCK_QUERIES]]
            answers = _answer_block(model, kg, block, how)
            journal.add({"answers": answers})
            done.extend(answers)
    except BaseException:
        journal.close()
        raise
    if progress is not None:
        progress(len(done), len(queries))
    count = write_rows(out, (row for rows in done for row in rows), kg, asserted=asserted)
    journal.remove()
    return count


def answers_in_order(
    model: Predictor,
    kg: KnowledgeGraph,
    queries: Sequence[tuple[str, Query]],
    how: AnswerOptions | None = None,
    **options: Any,
) -> Iterator[dict[str, Any]]:
    """The rows that `answer_queries` writes, as they get done."""
    how = replace(how or AnswerOptions(), **options)
    for start in range(0, len(queries), BLOCK_QUERIES):
        block = [query for _, query in queries[start : start + BLOCK_QUERIES]]
        for rows in _answer_block(model, kg, block, how):
            yield from rows


def _answer_block(
    model: Predictor, kg: KnowledgeGraph, block: list[Query], how: AnswerOptions
) -> list[list[dict[str, Any]]]:
    answers: list[list[dict[str, Any]]] = [[] for _ in block]
    for position, predictions in model.predict_many(kg, block, how):
        answers[position] = [answer_row(block[position], rank, p) for rank, p in enumerate(predictions, 1)]
    return answers


def answer_row(query: Query, rank: int, p: Prediction) -> dict[str, Any]:
    """One answer as a row of a table."""
    return {
        "head": p.head,
        "relation": p.relation,
        "tail": p.tail,
        "asked": _asked(query),
        "rank": rank,
        "probability": p.probability,
        "score": p.score,
        "known": p.known,
        "local": p.local,
        "is_sampled": p.is_sampled,
    }


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


def _rows(opened: Input, kind: str, complaints: list[str] | None) -> Iterator[tuple[str, list[Any]]]:
    """(where it stands, cells) of every row; the first one may be a header, and is one in Parquet."""
    if kind == "parquet":
        with refusing_damage(opened.name):
            frame = scan_parquet(opened, None).collect()
        yield opened.name, list(frame.columns)
        yield from ((f"{opened.name} row {i}", list(row)) for i, row in enumerate(frame.iter_rows(), 1))
        return
    refuse_foreign(opened)
    yield from _json_rows(opened, complaints) if kind == "jsonl" else _text_rows(opened, kind, complaints)


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


def _text_rows(opened: Input, kind: str, complaints: list[str] | None) -> Iterator[tuple[str, list[str]]]:
    if kind == "csv":
        yield from _csv_rows(opened, complaints)
        return
    for first, chunk in line_chunks(opened):
        text = io.StringIO(chunk.decode(), newline="")
        for number, line in enumerate(text, first):
            if line.strip():
                yield f"{opened.name} line {number}", line.rstrip("\r\n").split("\t")


def _csv_rows(opened: Input, complaints: list[str] | None) -> Iterator[tuple[str, list[str]]]:
    lines = (line for _, chunk in line_chunks(opened) for line in io.StringIO(chunk.decode(), newline=""))
    reader = csv.reader(lines, skipinitialspace=True, strict=True)
    while True:
        where = f"{opened.name} line {reader.line_num + 1}"
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            _bad(DataError(f"{where}: the quoting is broken ({error})"), complaints)
            continue
        if row:
            yield where, [cell.strip() for cell in row]


def _json_rows(opened: Input, complaints: list[str] | None) -> Iterator[tuple[str, list[Any]]]:
    for first, chunk in line_chunks(opened):
        for number, line in enumerate(chunk.splitlines(), first):
            where = f"{opened.name} line {number}"
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                _bad(DataError(f"{where}: not JSON ({error})"), complaints)
                continue
            if isinstance(row, dict):
                row = [row.get(role) for role in ROLES]
            if not isinstance(row, list):
                _bad(DataError(f"{where}: expected an object or array, found {type(row).__name__}"), complaints)
                continue
            yield where, row
