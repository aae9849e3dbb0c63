"""Facts that a person has accepted: a table with identifiers, as `complete` and its review page write it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gamma_kg.data.columns import ROLES
from gamma_kg.data.formats import find_format
from gamma_kg.data.frames import refusing_damage, scan_parquet
from gamma_kg.data.lines import line_chunks
from gamma_kg.data.options import ReadOptions
from gamma_kg.data.streams import open_input, refuse_foreign
from gamma_kg.data.write_back import AcceptedFact
from gamma_kg.errors import DataError

YES = {"yes", "true", "1", "accept", "accepted"}
NO = {"no", "false", "0", "reject", "rejected", "", "none"}


def read_accepted(path: Path) -> list[AcceptedFact]:
    """The facts of a table; of one with a column `accepted` or `decision`, those with yes, true, 1 or accept there."""
    facts = []
    for where, row in _rows(path):
        answer = str(row.get("accepted", row.get("decision", "yes"))).strip().casefold()
        if answer not in YES | NO:
            raise DataError(f"{where}: accepted must be yes or no, got {answer!r}")
        if answer in NO:
            continue
        parts = [row.get(f"{role}_id") or row.get(role) for role in ROLES]
        if not all(isinstance(part, str) and part for part in parts):
            raise DataError(
                f"{where}: expected head_id, relation_id and tail_id (or head, relation, tail), got {parts}"
            )
        head, relation, tail = map(str, parts)
        facts.append(AcceptedFact(head, relation, tail, where, _number(row.get("probability"))))
    if not facts:
        raise DataError(f"{path}: no accepted facts found")
    return facts


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with open_input(path, lambda num_bytes: None) as opened:
        kind = find_format(opened, path, ReadOptions())
        if kind == "parquet":
            with refusing_damage(opened.name):
                frame = scan_parquet(opened, None).collect()
            yield from ((f"{path} row {i}", row) for i, row in enumerate(frame.iter_rows(named=True), 1))
            return
        refuse_foreign(opened)
        text = b"".join(chunk for _, chunk in line_chunks(opened)).decode()
    if kind == "jsonl":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{path} line {number}: not JSON ({error})") from None
                if not isinstance(row, dict):
                    raise DataError(f"{path} line {number}: expected an object, found {type(row).__name__}")
                yield f"{path} line {number}", row
        return
    if kind not in ("tsv", "csv", "txt"):
        raise DataError(f"{path}: accepted facts are a table (.tsv .csv .jsonl .parquet), not {kind}")
    quoting = {"quoting": csv.QUOTE_NONE, "delimiter": "\t"} if kind != "csv" else {"strict": True}
    reader = csv.DictReader(io.StringIO(text, newline=""), **quoting)
    try:
        for row in reader:
            yield f"{path} line {reader.line_num}", row
    except csv.Error as error:
        raise DataError(f"{path} line {reader.line_num}: the quoting is broken ({error})") from None


def _number(cell: Any) -> float | None:
    try:
        return None if cell in (None, "") else float(cell)
    except (TypeError, ValueError):
        return None
