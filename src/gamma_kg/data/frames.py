"""Tables that know their columns: Parquet files, polars and pandas data frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from gamma_kg.data.columns import ROLES, by_choice, of_frame
from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.options import Tally
from gamma_kg.data.panics import panics_held_back
from gamma_kg.data.parquet_check import check_parquet
from gamma_kg.data.streams import Input
from gamma_kg.errors import DataError, EmptyFileError
from gamma_kg.machine.fork import need_polars

BATCH_ROWS = 1_000_000
# A file can claim any number of equal rows in a few bytes; rows of a graph differ.
MAX_ROWS_PER_BYTE = 100


def read_parquet(opened: Input, path: Path | None, encoder: TripleEncoder, tally: Tally) -> None:
    """Reads the three columns of a Parquet file, a million rows at a time."""
    lazy = scan_parquet(opened, path)
    with refusing_damage(opened.name):
        names = lazy.collect_schema().names()
        total = lazy.select(pl.len()).collect().item()
    if total == 0:
        raise EmptyFileError(f"{opened.name}: the table has no rows")
    chosen = _roles(lazy, names, opened.name, tally)
    size = path.stat().st_size if path is not None else 0
    if size and total > MAX_ROWS_PER_BYTE * size:
        raise DataError(
            f"{opened.name}: claims {total:,} rows in {size:,} bytes, which no graph has; get the file again"
        )
    for start in range(0, total, BATCH_ROWS):
        need_polars(opened.name, size * min(BATCH_ROWS, total) // total)
        with refusing_damage(opened.name):
            frame = chosen.slice(start, BATCH_ROWS).collect()
        add_frame(frame, opened.name, start, encoder, tally)


def scan_parquet(opened: Input, path: Path | None) -> pl.LazyFrame:
    """A Parquet file that is not read yet."""
    need_polars(opened.name)
    if path is not None and not opened.is_packed:
        with path.open("rb") as file:
            check_parquet(opened.name, file)
        with refusing_damage(opened.name):
            return pl.scan_parquet(path)
    content = BytesIO(opened.stream.read())
    check_parquet(opened.name, content)
    content.seek(0)
    with refusing_damage(opened.name):
        return pl.scan_parquet(content)


def _roles(lazy: pl.LazyFrame, names: Sequence[str], where: str, tally: Tally) -> pl.LazyFrame:
    """The columns head, relation and tail; of a list of edges the relation is the one that was named."""
    options = tally.options
    if options.edge_relation is None:
        positions = of_frame(names, options.columns, where)
        return lazy.select(**{role: pl.col(names[i]) for role, i in zip(ROLES, positions, strict=True)})
    if options.columns is None and len(names) != 2:
        raise DataError(f"{where}: a list of edges has 2 columns (head, tail), found {len(names)}; name the two")
    head, tail = (0, 1) if options.columns is None else by_choice(options.columns, names, where, ("head", "tail"))
    return lazy.select(head=pl.col(names[head]), relation=pl.lit(options.edge_relation), tail=pl.col(names[tail]))


@contextmanager
def refusing_damage(name: str) -> Iterator[None]:
    """What polars says of a damaged Parquet file becomes one `DataError`; some damage makes it panic."""
    try:
        with panics_held_back():
            yield
    except (pl.exceptions.PolarsError, OSError) as error:
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise DataError(f"{name}: not a sound Parquet file ({first_line}); get the file again") from error
    except pl.exceptions.PanicException as error:
        raise DataError(
            f"{name}: not a sound Parquet file (its inside can't be decoded); get the file again"
        ) from error


def add_frame(frame: pl.DataFrame, where: str, first_row: int, encoder: TripleEncoder, tally: Tally) -> None:
    """Encodes the columns head, relation, tail of a frame; rows with an empty cell are bad lines."""
    need_polars(where, int(frame.estimated_size()))
    kinds = ", ".join(f"{name} is {kind}" for name, kind in frame.schema.items())
    if any(kind.is_nested() for kind in frame.schema.values()):  # polars would print a struct as a name
        raise DataError(f"{where}: names must be text or numbers, but {kinds}")
    # Where a column has holes, tools make it one of floats and write the holes as NaN.
    frame = frame.with_columns(pl.col(name).fill_nan(None) for name, kind in frame.schema.items() if kind.is_float())
    try:
        frame = frame.select(pl.col(ROLES).cast(pl.String))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{where}: names must be text or numbers, but {kinds}") from error
    nulls = list(tally.options.null_values)
    if nulls:
        is_null = pl.any_horizontal(pl.col(role).is_null() | pl.col(role).is_in(["", *nulls]) for role in ROLES)
        kept = frame.filter(~is_null)
        tally.nulls_skipped += len(frame) - len(kept)
        frame = kept
    is_bad = pl.any_horizontal(pl.col(role).is_null() | (pl.col(role) == "") for role in ROLES)
    bad = frame.select(is_bad.alias("bad"))["bad"]
    if bad.any():
        for row in bad.arg_true():
            role = next(role for role in ROLES if not frame[role][row])
            tally.bad(f"{where} row {first_row + row + 1}: the {role} is empty")
        frame = frame.filter(~bad)
    encoder.add(*(frame[role] for role in ROLES))


def three_columns(frame: Any, columns: Sequence[str | int] | None) -> pl.DataFrame:
    """Head, relation and tail of a polars or pandas data frame, as a polars one."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not hasattr(frame, "columns") or not hasattr(frame, "shape"):
        raise DataError(f"expected a polars or pandas data frame, got {type(frame).__name__}")
    names = list(frame.columns)
    positions = of_frame([str(name) for name in names], columns, "the data frame")
    if isinstance(frame, pl.DataFrame):
        return pl.DataFrame({role: frame.to_series(i) for role, i in zip(ROLES, positions, strict=True)})
    return pl.DataFrame({role: _from_pandas(frame.iloc[:, i]) for role, i in zip(ROLES, positions, strict=True)})


def text_columns(frame: Any) -> tuple[list[str], list[list[str | None]]]:
    """Names and cells of all columns of a polars or pandas data frame, as texts."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not hasattr(frame, "columns") or not hasattr(frame, "shape"):
        raise DataError(f"expected a polars or pandas data frame, got {type(frame).__name__}")
    is_polars = isinstance(frame, pl.DataFrame)
    columns = [frame.to_series(i) if is_polars else _from_pandas(frame.iloc[:, i]) for i in range(frame.shape[1])]
    cells = [[None if cell is None else str(cell) for cell in column.to_list()] for column in columns]
    return [str(name) for name in frame.columns], cells


def _from_pandas(column: Any) -> pl.Series:
    # Through Python strings, because polars would need pyarrow to take a pandas column.
    is_null = column.isna().to_list()
    return pl.Series(
        [None if null else str(name) for name, null in zip(column.to_list(), is_null, strict=True)], dtype=pl.String
    )
