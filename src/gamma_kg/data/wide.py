"""Tables with one row per thing (airports.csv): one column names the thing, each other column is a relation.

A cell becomes the fact (thing, column, cell); empty cells and null values none. A column that can't link anything says
nothing to a model of links: numbers that name no row, and cells of which nearly each one stands there alone. Such
columns are left out with a note, unless they are asked for by name or literals are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gamma_kg.data.columns import by_choice
from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.frames import refusing_damage, scan_parquet, text_columns
from gamma_kg.data.options import Tally
from gamma_kg.data.streams import Input
from gamma_kg.data.tables import read_header_and_rows
from gamma_kg.errors import DataError
from gamma_kg.io.shown import few
from gamma_kg.machine.fork import need_polars

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|\.\d+)([eE][+-]?\d+)?")
# Of a column's different values, the share that must name rows for the column to be taken as links between rows.
MIN_LINKING_SHARE = 0.5
# Cells per different value: below this a column is a list of names, not a link to something shared.
MIN_SHARED = 1.1


def read_wide(opened: Input, path: Path | None, kind: str, encoder: TripleEncoder, tally: Tally) -> None:
    """Reads a wide TSV, CSV or Parquet table."""
    if kind == "parquet":
        with refusing_damage(opened.name):
            header, columns = text_columns(scan_parquet(opened, path))
    elif kind in ("tsv", "csv", "txt"):
        header, rows = read_header_and_rows(opened, kind, tally)
        columns = [[] for _ in header]
        for _, cells in rows:
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell)
    else:
        raise DataError(f"{opened.name}: a column of names (id_column) is for TSV, CSV and Parquet, not for {kind}")
    add_columns(opened.name, header, columns, encoder, tally)


def add_columns(
    where: str, header: Sequence[str], columns: Sequence[Sequence[str | None]], encoder: TripleEncoder, tally: Tally
) -> None:
    """The facts of all columns but the one that names the rows."""
    need_polars(where)
    options = tally.options
    assert options.id_column is not None
    (at,) = by_choice([options.id_column], header, where, ("name of each row",))
    if options.columns is None:
        chosen = tuple(i for i in range(len(header)) if i != at)
    else:
        chosen = by_choice(options.columns, header, where, [f"column {column!r}" for column in options.columns])
    nulls = {None, "", *options.null_values}
    ids = set(columns[at]) - nulls
    left_out = []
    for position in chosen:
        cells = columns[position]
        if options.columns is None and options.literals == "skip" and not _links(cells, ids, nulls):
            left_out.append(header[position])
            continue
        kept = [(name, cell) for name, cell in zip(columns[at], cells, strict=True) if cell not in nulls]
        facts = [(name, cell) for name, cell in kept if name not in nulls]
        tally.nulls_skipped += len(cells) - len(facts)
        if facts:
            names = pl.Series([name for name, _ in facts], dtype=pl.String)
            relation = pl.Series([header[position]]).new_from_index(0, len(facts))
            encoder.add(names, relation, pl.Series([cell for _, cell in facts], dtype=pl.String))
    if left_out:
        tally.notes.append(
            f"{where}: columns that link nothing were left out ({few(left_out, 8)}); "
            "name the ones you want (--columns a,b,c)"
        )


def _links(cells: Sequence[str | None], ids: set[str | None], nulls: set[str | None]) -> bool:
    """Whether a column can link things: to other rows, or by values that several rows share."""
    values = [cell for cell in cells if cell not in nulls]
    different = set(values)
    if not different:
        return False
    if len(different & ids) >= MIN_LINKING_SHARE * len(different):
        return True
    if all(_NUMBER.fullmatch(value.strip()) for value in different if value is not None):
        return False
    return len(values) >= MIN_SHARED * len(different)
