"""Predicted facts to files: TSV, CSV, JSON lines, Parquet, N-Triples or Turtle, chosen by the file's ending.

Tables carry both what people call a thing (head, relation, tail) and what the data calls it (head_id, relation_id,
tail_id: the full IRI for RDF). In RDF each fact is a statement with its probability (`rdf_rows.py`).
CSV is what spreadsheets open, so cells that one would run as a formula get an apostrophe in front; the other formats
hold names as they are. Files appear whole or not at all.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gamma_kg.errors import DataError, did_you_mean
from gamma_kg.io.atomic import write_whole
from gamma_kg.io.rdf_rows import write_ntriples, write_turtle
from gamma_kg.io.shown import spreadsheet_text
from gamma_kg.machine.fork import need_polars

if TYPE_CHECKING:
    from gamma_kg.graph.graph import KnowledgeGraph

Row = Mapping[str, Any]
# The columns that every table has.
NAMES = ("head", "relation", "tail", "head_id", "relation_id", "tail_id")


def write_rows(path: str | Path, rows: Iterable[Row], kg: KnowledgeGraph, *, asserted: bool = False) -> int:
    """Writes rows that have at least head, relation and tail; returns how many.

    `asserted` is for RDF: the facts themselves are written too, not only statements about them.
    """
    path = Path(path)
    check_ending(path, asserted=asserted)
    counted = _Counted(rows)
    ending, is_packed = _ending(path), path.name.lower().endswith(".gz")

    def write(file: Path) -> None:
        if ending in RDF_WRITERS:
            with _open(file, is_packed) as stream:
                RDF_WRITERS[ending](stream, counted, kg, asserted)
        elif ending == ".parquet":
            _write_parquet(file, identified(counted, kg))
        else:
            with _open(file, is_packed) as stream:
                TEXT_WRITERS[ending](stream, identified(counted, kg))

    write_whole(path, write)
    return counted.count


def identified(rows: Iterable[Row], kg: KnowledgeGraph) -> Iterator[dict[str, Any]]:
    """Rows with what the data calls head, relation and tail."""
    for row in rows:
        yield {
            **row,
            "head_id": kg.entities.identifier(kg.entity_id(row["head"])),
            "relation_id": kg.relations.identifier(kg.relation_id(row["relation"])),
            "tail_id": kg.entities.identifier(kg.entity_id(row["tail"])),
        }


def check_ending(path: Path, *, asserted: bool = False) -> None:
    """Refuses an ending for which there is no writer, before any work is done."""
    ending = _ending(path)
    if ending not in ENDINGS:
        hint = did_you_mean(ending, ENDINGS) or f": choose from {' '.join(ENDINGS)}, also with .gz"
        raise DataError(f"{path}: no format of the ending {ending or '(none)'!r} can be written{hint}")
    if ending == ".parquet" and path.name.lower().endswith(".gz"):
        raise DataError(f"{path}: Parquet is packed already; leave out .gz")
    if asserted and ending not in RDF_WRITERS:
        raise DataError(f"{path}: only RDF can assert facts ({' '.join(RDF_WRITERS)}); a table lists them anyway")


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


class _Counted:
    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows, self.count = rows, 0

    def __iter__(self) -> Any:
        for row in self.rows:
            self.count += 1
            yield row


def _open(path: Path, is_packed: bool) -> IO[str]:
    if is_packed:
        return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


def write_json_lines(file: IO[str], rows: Iterable[Row]) -> None:
    """One object a row."""
    for row in rows:
        file.write(json.dumps(dict(row), ensure_ascii=False) + "\n")


def write_csv(file: IO[str], rows: Iterable[Row]) -> None:
    """A table for spreadsheets, with a header."""
    writer = csv.writer(file, lineterminator="\n")
    for row in _below_header(rows, writer.writerow):
        cells = (_cell(cell) for cell in row.values())
        writer.writerow(spreadsheet_text(cell) if isinstance(cell, str) else cell for cell in cells)


def write_tsv(file: IO[str], rows: Iterable[Row]) -> None:
    """A plain table, with a header."""
    for row in _below_header(rows, lambda names: file.write("\t".join(names) + "\n")):
        file.write("\t".join(_plain_cell(cell) for cell in row.values()) + "\n")


def _below_header(rows: Iterable[Row], write_header: Callable[[Iterable[str]], object]) -> Iterator[Row]:
    """The rows, after a header that stands there even if there are none."""
    is_first = True
    for row in rows:
        if is_first:
            write_header(row)
        is_first = False
        yield row
    if is_first:
        write_header(NAMES)


def _write_parquet(path: Path, rows: Iterable[Row]) -> None:
    import polars as pl

    need_polars(str(path))
    columns = [{name: _cell(cell) for name, cell in row.items()} for row in rows]
    empty = pl.DataFrame(schema=dict.fromkeys(NAMES, pl.String))
    frame = pl.DataFrame(columns, infer_schema_length=None) if columns else empty
    # A column that is empty throughout (`local` of answers from the whole graph) would have no type to be read by.
    frame.with_columns(pl.col(pl.Null).cast(pl.Int64)).write_parquet(path)


def _cell(cell: Any) -> Any:
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | list) else cell


def _plain_cell(cell: Any) -> str:
    # TSV has no quoting: white space that would break the table becomes a blank.
    text = "" if cell is None else str(_cell(cell))
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


TEXT_WRITERS: dict[str, Callable[[IO[str], Iterable[Row]], None]] = {
    ".tsv": write_tsv,
    ".csv": write_csv,
    ".jsonl": write_json_lines,
}
RDF_WRITERS: dict[str, Callable[[IO[str], Iterable[Row], KnowledgeGraph, bool], None]] = {
    ".nt": write_ntriples,
    ".ttl": write_turtle,
}
ENDINGS = (*TEXT_WRITERS, ".parquet", *RDF_WRITERS)
