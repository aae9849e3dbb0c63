"""JSON lines: one object {"head": …, "relation": …, "tail": …} or one array [head, relation, tail] a line."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

from gamma_kg.data.columns import ROLES, by_choice, by_header_names, unclear
from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.lines import line_chunks
from gamma_kg.data.options import Tally
from gamma_kg.data.streams import Input
from gamma_kg.errors import DataError, EmptyFileError

# Keys or positions of head, relation and tail; the relation of a list of edges is none of them.
Roles = tuple[str | int, str | int | None, str | int]


def read_json_lines(opened: Input, encoder: TripleEncoder, tally: Tally) -> None:
    """Reads a whole file; which keys are head, relation and tail is settled by the first object."""
    roles: Roles | None = None
    has_lines = False
    for first, chunk in line_chunks(opened, tally.options.encoding):
        batch: list[tuple[str, str, str]] = []
        for number, line in enumerate(BytesIO(chunk), first):
            if not line.strip():
                continue
            has_lines = True
            where = f"{opened.name} line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError
                column = f" column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
                reason = error.msg if isinstance(error, json.JSONDecodeError) else "too deep or too large"
                tally.bad(f"{where}{column}: not JSON ({reason}); expected one object or array a line")
                continue
            if roles is None and isinstance(row, dict | list):
                roles = _roles(row, where, tally)
            triple = _triple(row, roles, where, tally)
            if triple is not None:
                batch.append(triple)
        encoder.add_rows(batch)
    if not has_lines:
        raise EmptyFileError(f"{opened.name}: the file is empty; expected one JSON object a line")


def _roles(row: dict[str, Any] | list[Any], where: str, tally: Tally) -> Roles:
    columns = tally.options.columns
    if tally.options.edge_relation is not None:
        keys = list(row) if isinstance(row, dict) else [str(i) for i in range(len(row))]
        if columns is None and len(keys) != 2:
            raise DataError(f"{where}: an edge has 2 ends (head, tail), found {len(keys)} cells; name the two")
        head, tail = (0, 1) if columns is None else by_choice(columns, keys, where, ("head", "tail"))
        return (keys[head], None, keys[tail]) if isinstance(row, dict) else (head, None, tail)
    if isinstance(row, list):
        if columns is None and len(row) != 3:
            raise DataError(f"{where}: {unclear(len(row))}")
        if columns is None:
            return 0, 1, 2
        head, relation, tail = by_choice(columns, [str(i) for i in range(len(row))], where)
        return head, relation, tail
    keys = list(row)
    positions = by_header_names(keys) if columns is None else by_choice(columns, keys, where)
    if positions is None:
        raise DataError(
            f"{where}: can't tell which of the keys {', '.join(keys) or '(none)'} are head, relation and tail; "
            "name them (--columns subject,predicate,object)"
        )
    return keys[positions[0]], keys[positions[1]], keys[positions[2]]


def _triple(row: Any, roles: Roles | None, where: str, tally: Tally) -> tuple[str, str, str] | None:
    if not isinstance(row, dict | list) or roles is None:
        tally.bad(f"{where}: expected an object or array, found {type(row).__name__}")
        return None
    names: list[str] = []
    nulls = tally.options.null_values
    for role, key in zip(ROLES, roles, strict=True):
        if key is None:
            names.append(tally.options.edge_relation or "")
            continue
        try:
            cell = row[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            tally.bad(f"{where}: the {role} ({key!r}) is missing")
            return None
        if isinstance(cell, float) and cell != cell:
            cell = None  # Python and pandas write a hole among numbers as NaN
        if nulls and (cell is None or cell == "" or cell in nulls):
            tally.nulls_skipped += 1
            return None
        if isinstance(cell, bool) or not isinstance(cell, str | int | float):
            found = "null" if cell is None else type(cell).__name__
            tally.bad(f"{where}: the {role} ({key!r}) must be a text or a number, found {found}")
            return None
        if cell == "":
            tally.bad(f"{where}: the {role} ({key!r}) is empty")
            return None
        name = str(cell)
        if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
            tally.bad(f"{where}: the {role} ({key!r}) holds half a character (a lone surrogate)")
            return None
        names.append(name)
    return names[0], names[1], names[2]
