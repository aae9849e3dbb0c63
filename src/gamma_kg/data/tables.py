"""Text tables with one triple a line: TSV (no quoting), CSV (quoted or not) and whitespace-separated text.

Chunks whose lines all have the right number of separators go through polars; any other chunk is read row
by row in Python, which finds the line to complain about. Both ways give the same triples.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import chain

import numpy as np
import polars as pl

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.layout import Layout, cells_of, find_layout, separator_of
from gamma_kg.data.lines import line_chunks, numbered_lines
from gamma_kg.data.options import Tally
from gamma_kg.data.streams import Input
from gamma_kg.errors import EmptyFileError
from gamma_kg.machine.fork import can_use_polars

BATCH_ROWS = 200_000


def read_table(opened: Input, kind: str, encoder: TripleEncoder, tally: Tally) -> None:
    """Reads a whole text table of the given kind ("tsv", "csv", "txt") into the encoder."""
    first, chunks = _first_chunk(opened, tally)
    layout = find_layout(opened, kind, first, tally)
    reader = _TableReader(opened, layout, encoder, tally)
    reader.read(chain([first], chunks))


def read_header_and_rows(opened: Input, kind: str, tally: Tally) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a table and its rows with their line numbers; rows of another length are bad lines."""
    first, chunks = _first_chunk(opened, tally)
    text = next(line for _, line in numbered_lines(first) if line.strip())
    separator = separator_of(kind, text, least=2)
    header = cells_of(text, separator, kind == "csv")
    layout = Layout(separator, kind == "csv", len(header), tuple(range(len(header))), True)
    reader = _TableReader(opened, layout, TripleEncoder(), tally)
    return header, reader.sound_rows(chain([first], chunks))


def _first_chunk(opened: Input, tally: Tally) -> tuple[tuple[int, bytes], Iterator[tuple[int, bytes]]]:
    chunks = line_chunks(opened, tally.options.encoding)
    first = next(chunks, None)
    # By the characters: Unicode has white space that bytes don't know of.
    while first is not None and not any(line.strip() for _, line in numbered_lines(first)):
        first = next(chunks, None)
    if first is None:
        raise EmptyFileError(f"{opened.name}: the file is empty; expected one triple a line (head, relation, tail)")
    return first, chunks


class _TableReader:
    def __init__(self, opened: Input, layout: Layout, encoder: TripleEncoder, tally: Tally) -> None:
        self._input = opened
        self._layout = layout
        self._encoder = encoder
        self._tally = tally
        self._header_pending = layout.has_header
        self._nulls = list(tally.options.null_values)

    def read(self, chunks: Iterator[tuple[int, bytes]]) -> None:
        for number, chunk in chunks:
            if self._header_pending:
                number, chunk = self._without_header(number, chunk)
            if self._layout.is_quoted and b'"' in chunk:
                self._read_rows(self._quoted_rows(number, chunk, chunks))
            elif not self._read_fast(chunk):
                self._read_rows(self._split_lines(number, chunk))

    def sound_rows(self, chunks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, list[str]]]:
        """Line number and cells of every row with the right number of them."""
        for number, chunk in chunks:
            if self._header_pending:
                number, chunk = self._without_header(number, chunk)
            is_quoted = self._layout.is_quoted and b'"' in chunk
            rows = self._quoted_rows(number, chunk, chunks) if is_quoted else self._split_lines(number, chunk)
            for line, cells in rows:
                if self._has_all_cells(line, cells):
                    yield line, cells

    def _without_header(self, number: int, chunk: bytes) -> tuple[int, bytes]:
        self._header_pending = False
        while chunk and not chunk[: chunk.find(b"\n")].strip():
            number, chunk = number + 1, chunk[chunk.find(b"\n") + 1 :]
        return number + 1, chunk[chunk.find(b"\n") + 1 :]

    def _read_fast(self, chunk: bytes) -> bool:
        """The polars way; False if a line does not have exactly the right number of separators or a cell is empty."""
        layout = self._layout
        if not can_use_polars(len(chunk)):
            return not chunk
        if not chunk or layout.separator is None or not _is_regular(chunk, layout.separator, layout.count):
            return not chunk
        frame = pl.read_csv(
            chunk,
            separator=layout.separator,
            quote_char=None,
            has_header=False,
            schema={f"c{i}": pl.String for i in range(layout.count)},
        )
        columns = [frame[f"c{i}"] for i in layout.positions]
        if layout.is_quoted:
            columns = [column.str.strip_chars() for column in columns]
        if any(column.null_count() or (column == "").any() for column in columns):
            return False
        if self._nulls:
            is_null = pl.DataFrame({str(i): column.is_in(self._nulls) for i, column in enumerate(columns)})
            kept = ~is_null.select(pl.any_horizontal(pl.all()).alias("null"))["null"]
            self._tally.nulls_skipped += len(kept) - int(kept.sum())
            columns = [column.filter(kept) for column in columns]
        if layout.relation is not None:
            columns.insert(1, pl.Series([layout.relation]).new_from_index(0, len(columns[0])))
        self._encoder.add(*columns)
        return True

    def _read_rows(self, rows: Iterator[tuple[int, list[str]]]) -> None:
        batch: list[tuple[str, str, str]] = []
        for number, cells in rows:
            triple = self._triple(number, cells)
            if triple is not None:
                batch.append(triple)
            if len(batch) == BATCH_ROWS:
                self._encoder.add_rows(batch)
                batch.clear()
        self._encoder.add_rows(batch)

    def _triple(self, number: int, cells: list[str]) -> tuple[str, str, str] | None:
        layout = self._layout
        if not self._has_all_cells(number, cells):
            return None
        names = [cells[i] for i in layout.positions]
        if self._nulls and any(not name or name in self._nulls for name in names):
            self._tally.nulls_skipped += 1
            return None
        for role, position, name in zip(layout.roles, layout.positions, names, strict=True):
            if not name:
                self._tally.bad(f"{self._input.name} line {number} column {position + 1}: the {role} is empty")
                return None
        if layout.relation is not None:
            names.insert(1, layout.relation)
        return names[0], names[1], names[2]

    def _has_all_cells(self, number: int, cells: list[str]) -> bool:
        if len(cells) == self._layout.count:
            return True
        self._tally.bad(f"{self._input.name} line {number}: expected {self._layout.wanted}, found {len(cells)}")
        return False

    def _split_lines(self, number: int, chunk: bytes) -> Iterator[tuple[int, list[str]]]:
        for line, text in numbered_lines((number, chunk)):
            if text.strip():
                cells = text.split(self._layout.separator)
                yield line, [cell.strip() for cell in cells] if self._layout.is_quoted else cells

    def _quoted_rows(
        self, number: int, chunk: bytes, chunks: Iterator[tuple[int, bytes]]
    ) -> Iterator[tuple[int, list[str]]]:
        """Rows in which cells may be quoted and hold separators or line ends, also across chunks."""

        def lines() -> Iterator[str]:
            for part in chain([chunk], (later for _, later in chunks)):
                yield from io.StringIO(part.decode("utf-8"), newline="")

        assert self._layout.separator is not None
        reader = csv.reader(lines(), delimiter=self._layout.separator, strict=True, skipinitialspace=True)

        while True:
            start = number + reader.line_num
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                trouble = _csv_trouble(error, number + reader.line_num - 1)
                self._tally.bad(f"{self._input.name} line {start}: {trouble}")
                continue
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield start, [cell.strip() for cell in cells]


def _csv_trouble(error: csv.Error, end: int) -> str:
    if "field larger" in str(error) or "unexpected end" in str(error):
        return f"a quote is opened here and not closed (looked as far as line {end})"
    return f"the quoting is broken ({error})"


def _is_regular(chunk: bytes, separator: str, count: int) -> bool:
    """Whether every line has exactly `count` cells and no line is blank; `chunk` ends with a newline."""
    array = np.frombuffer(chunk, dtype=np.uint8)
    ends = np.flatnonzero(array == 10)
    cuts = np.flatnonzero(array == ord(separator))
    if len(cuts) != len(ends) * (count - 1):
        return False
    by_line = cuts.reshape(len(ends), count - 1)
    return bool((by_line[1:, 0] > ends[:-1]).all() and (by_line[:, -1] < ends).all())
