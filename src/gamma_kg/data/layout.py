"""How the lines of one text table are cut into head, relation and tail: found by its first line and what was asked."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from gamma_kg.data.columns import HEADER_NAMES, ROLES, by_choice, by_header_names, folded, refuse_twins, unclear
from gamma_kg.data.lines import numbered_lines
from gamma_kg.data.options import Tally
from gamma_kg.data.streams import Input
from gamma_kg.errors import DataError

SEPARATOR_WORDS = {"\t": "tab-separated", ",": "comma-separated", ";": "semicolon-separated", "|": "|-separated"}
CSV_SEPARATORS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Layout:
    """How the lines of one table are cut. `separator` None means any run of white space."""

    separator: str | None
    is_quoted: bool
    count: int
    positions: tuple[int, ...]
    has_header: bool
    relation: str | None = None
    """Set for a list of edges: `positions` are head and tail, and this is the relation of all of them."""

    @property
    def wanted(self) -> str:
        """'3 tab-separated columns (head, relation, tail)'."""
        word = "whitespace-separated" if self.separator is None else SEPARATOR_WORDS[self.separator]
        roles = {3: " (head, relation, tail)", 2: " (head, tail)"} if len(self.positions) == self.count else {}
        return f"{self.count} {word} columns{roles.get(self.count, '')}"

    @property
    def roles(self) -> tuple[str, ...]:
        return ROLES if self.relation is None else ("head", "tail")


def find_layout(opened: Input, kind: str, first: tuple[int, bytes], tally: Tally) -> Layout:
    """Looks at the first line that is not blank, and at what the caller asked for."""
    options = tally.options
    number, text = next((n, s) for n, s in numbered_lines(first) if s.strip())
    is_quoted = kind == "csv"
    where = f"{opened.name} line {number}"
    if options.edge_relation is not None:
        separator = separator_of(kind, text, least=2)
        return _edge_layout(cells_of(text, separator, is_quoted), separator, is_quoted, where, tally)
    separator = separator_of(kind, text, least=3)
    cells = cells_of(text, separator, is_quoted)
    known = by_header_names(cells)
    header = options.header
    if options.columns is not None:
        positions = by_choice(options.columns, cells, where)
        names_used = any(isinstance(column, str) for column in options.columns)
        has_header = names_used or (known is not None if header is None else header)
    else:
        has_header = known is not None if header is None else header
        if has_header and known is not None:
            refuse_twins(cells, known, where)
            positions = known
        elif len(cells) == 3:
            positions = (0, 1, 2)
        elif len(cells) < 3:
            words = Layout(separator, is_quoted, 3, (0, 1, 2), False).wanted
            has_edges = len(cells) == 2 or (kind == "txt" and len(text.split()) == 2)
            hint = "; if each line is an edge, name their relation (--edge-relation linked)"
            edges = hint if has_edges else ""
            raise DataError(f"{where}: expected {words}, found {len(cells)}{edges}")
        else:
            raise DataError(f"{where}: {unclear(len(cells), cells[0])}")
    if not has_header and kind == "csv":
        tally.doubts.append(
            f"{where} was read as a triple; if it names the columns, say which of them hold head, relation, tail "
            f"(--columns {','.join(cells)})"
        )
    return Layout(separator, is_quoted, len(cells), positions, has_header)


def _edge_layout(cells: list[str], separator: str | None, is_quoted: bool, where: str, tally: Tally) -> Layout:
    """A list of edges: two columns, or the two that were named."""
    options = tally.options
    if options.columns is not None:
        positions = by_choice(options.columns, cells, where, ("head", "tail"))
        has_header = any(isinstance(column, str) for column in options.columns) or bool(options.header)
    else:
        if len(cells) != 2:
            raise DataError(f"{where}: a list of edges has 2 columns (head, tail), found {len(cells)}; name the two")
        names = [folded(cell) for cell in cells]
        known = names[0] in HEADER_NAMES["head"] and names[1] in HEADER_NAMES["tail"]
        positions, has_header = (0, 1), known if options.header is None else options.header
    return Layout(separator, is_quoted, len(cells), positions, has_header, options.edge_relation)


def separator_of(kind: str, text: str, least: int) -> str | None:
    """What cuts this line of a table of this kind into at least so many cells; None is any run of white space."""
    if kind == "csv":
        cutting = (s for s in CSV_SEPARATORS if len(cells_of(text, s, True)) >= least)
        return next(cutting, CSV_SEPARATORS[0])
    return None if "\t" not in text and kind == "txt" and len(text.split()) == least else "\t"


def cells_of(text: str, separator: str | None, is_quoted: bool) -> list[str]:
    """The cells of one line."""
    if not is_quoted or separator is None:
        return text.split(separator)
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])]
    except csv.Error:
        return text.split(separator)
