"""Predicted facts to files: TSV, CSV, JSON lines, Parquet or N-Triples, chosen by the file's ending.

In N-Triples every fact is written as a triple and, reified (rdf:Statement), with its probability, score and rank,
which every RDF store understands. Names that are no IRIs become urn:gamma: names. Files appear whole or not at all.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from gamma_kg.errors import DataError, did_you_mean
from gamma_kg.io.atomic import write_whole

if TYPE_CHECKING:
    from gamma_kg.graph.graph import KnowledgeGraph

Row = Mapping[str, Any]

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
GAMMA = "urn:gamma:vocabulary:"
XSD_TYPES = {float: "double", int: "integer", bool: "boolean"}


def write_rows(path: str | Path, rows: Iterable[Row], kg: KnowledgeGraph) -> int:
    """Writes rows that have at least head, relation and tail; returns how many."""
    path = Path(path)
    check_ending(path)
    counted = _Counted(rows)
    write_whole(path, lambda file: WRITERS[_ending(path)](file, counted, kg, path.name.endswith(".gz")))
    return counted.count


def check_ending(path: Path) -> None:
    """Refuses an ending for which there is no writer, before any work is done."""
    ending = _ending(path)
    if ending not in WRITERS:
        hint = did_you_mean(ending, WRITERS) or f": choose from {' '.join(WRITERS)}, also with .gz"
        raise DataError(f"{path}: no format of the ending {ending or '(none)'!r} can be written{hint}")
    if ending == ".parquet" and path.name.endswith(".gz"):
        raise DataError(f"{path}: Parquet is packed already; leave .gz away")


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


def _write_json_lines(path: Path, rows: Iterable[Row], kg: KnowledgeGraph, is_packed: bool) -> None:
    with _open(path, is_packed) as file:
        for row in rows:
            file.write(json.dumps(dict(row), ensure_ascii=False) + "\n")


def _write_csv(path: Path, rows: Iterable[Row], kg: KnowledgeGraph, is_packed: bool) -> None:
    with _open(path, is_packed) as file:
        writer = csv.writer(file, lineterminator="\n")
        for i, row in enumerate(rows):
            if i == 0:
                writer.writerow(row)
            writer.writerow(_cell(cell) for cell in row.values())


def _write_tsv(path: Path, rows: Iterable[Row], kg: KnowledgeGraph, is_packed: bool) -> None:
    with _open(path, is_packed) as file:
        for i, row in enumerate(rows):
            if i == 0:
                file.write("\t".join(row) + "\n")
            # TSV has no quoting: white space that would break the table becomes a blank.
            cells = [str(_cell(cell)).replace("\t", " ").replace("\n", " ").replace("\r", " ") for cell in row.values()]
            file.write("\t".join(cells) + "\n")


def _write_parquet(path: Path, rows: Iterable[Row], kg: KnowledgeGraph, is_packed: bool) -> None:
    import polars as pl

    columns = [{name: _cell(cell) for name, cell in row.items()} for row in rows]
    frame = pl.DataFrame(columns) if columns else pl.DataFrame(schema=["head", "relation", "tail"])
    frame.write_parquet(path)


def _write_ntriples(path: Path, rows: Iterable[Row], kg: KnowledgeGraph, is_packed: bool) -> None:
    with _open(path, is_packed) as file:
        for number, row in enumerate(rows):
            head, tail = (_term(kg.entities.identifier(kg.entity_id(row[end]))) for end in ("head", "tail"))
            relation = _term(kg.relations.identifier(kg.relation_id(row["relation"])))
            fact = f"_:fact{number}"
            lines = [f"{head} {relation} {tail}", f"{fact} <{RDF}type> <{RDF}Statement>"]
            for name, term in (("subject", head), ("predicate", relation), ("object", tail)):
                lines.append(f"{fact} <{RDF}{name}> {term}")
            for name, cell in row.items():
                if type(cell) in XSD_TYPES:
                    text = str(cell).lower() if isinstance(cell, bool) else str(cell)
                    kind = XSD_TYPES[type(cell)]
                    lines.append(f'{fact} <{GAMMA}{name}> "{text}"^^<http://www.w3.org/2001/XMLSchema#{kind}>')
            file.write("".join(line + " .\n" for line in lines))


def _cell(cell: Any) -> Any:
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, dict | list) else cell


def _term(name: str) -> str:
    """A name of the graph as an N-Triples term."""
    if name.startswith(("_:", '"')):
        return name
    if "://" in name or name.startswith("urn:"):
        return f"<{quote(name, safe=IRI_CHARACTERS)}>"
    return f"<urn:gamma:{quote(name, safe='')}>"


IRI_CHARACTERS = ":/?#[]@!$&'()*+,;=-._~%"
WRITERS: dict[str, Callable[[Path, Iterable[Row], KnowledgeGraph, bool], None]] = {
    ".tsv": _write_tsv,
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
    ".nt": _write_ntriples,
}
