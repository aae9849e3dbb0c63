"""What a caller may choose about reading, and what reading tells afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gamma_kg.errors import DataError, did_you_mean

FORMATS = ("tsv", "csv", "txt", "parquet", "jsonl", "nt", "nq", "ttl", "trig", "rdf", "jsonld", "n3")
LITERALS = ("skip", "as-entities")
KEPT_COMPLAINTS = 5


@dataclass(frozen=True)
class ReadOptions:
    """Choices of `read_triples`; the defaults fit a file that is what its name says."""

    columns: Sequence[str | int] | None = None
    """Head, relation and tail column, by header name or by position counted from 0."""
    format: str | None = None
    """One of `FORMATS`; by default from the name's ending, or else from the first lines."""
    header: bool | None = None
    """Whether the first line of a table names its columns; by default looked at."""
    literals: Literal["skip", "as-entities"] = "skip"
    """What becomes of RDF triples whose object is a literal."""
    skip_bad_lines: bool = False
    """Leave out and count what can't be read instead of stopping there."""
    encoding: str = "utf-8"
    """Of text tables. UTF-16 with a byte-order mark is recognised by itself."""
    progress: bool | None = None
    """Show a progress bar on standard error; by default for large files on a terminal."""
    limit: int | None = None
    """SPARQL: read at most so many triples."""
    page_size: int = 10_000
    """SPARQL: triples per request."""
    timeout: float = 60.0
    """SPARQL: seconds to wait for one answer."""
    retries: int = 3
    """SPARQL: further attempts after a failed request."""

    def __post_init__(self) -> None:
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) != 3):
            raise DataError(f"columns must name three columns (head, relation, tail), got {self.columns!r}")
        if self.format is not None and self.format not in FORMATS:
            hint = did_you_mean(self.format, FORMATS)
            raise DataError(f"no format is named {self.format!r}{hint or ': choose from ' + ', '.join(FORMATS)}")
        if self.literals not in LITERALS:
            raise DataError(f"literals must be one of {', '.join(LITERALS)}, got {self.literals!r}")
        for name, least in (("limit", 1), ("page_size", 1), ("retries", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise DataError(f"{name} must be at least {least}, got {value}")
        if self.timeout <= 0:
            raise DataError(f"timeout must be more than 0 seconds, got {self.timeout}")


@dataclass(frozen=True)
class ReadReport:
    """What was read and what was left out."""

    rows: int = 0
    """Triples kept."""
    literals_skipped: int = 0
    bad_lines: int = 0
    files: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    """The first few reasons why a line was left out."""
    notes: tuple[str, ...] = ()
    """What the reader decided by itself and a person may want to know."""

    def __str__(self) -> str:
        files = ", ".join(self.files) if len(self.files) < 4 else f"{len(self.files)} files"
        parts = [f"{self.rows:,} triples from {files}"]
        if self.literals_skipped:
            parts.append(f"{self.literals_skipped:,} literals skipped")
        if self.bad_lines:
            parts.append(f"{self.bad_lines:,} bad lines skipped (first: {self.complaints[0]})")
        return "; ".join(parts)


@dataclass
class Tally:
    """Counts while reading. `bad` stops at the first damage unless bad lines are to be skipped."""

    options: ReadOptions
    literals_skipped: int = 0
    bad_lines: int = 0
    files: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def bad(self, complaint: str) -> None:
        """Notes one unreadable line, or raises if lines are not to be skipped."""
        if not self.options.skip_bad_lines:
            raise DataError(complaint)
        self.bad_lines += 1
        if len(self.complaints) < KEPT_COMPLAINTS:
            self.complaints.append(complaint)

    def report(self, rows: int) -> ReadReport:
        """The finished account."""
        return ReadReport(
            rows=rows,
            literals_skipped=self.literals_skipped,
            bad_lines=self.bad_lines,
            files=tuple(self.files),
            complaints=tuple(self.complaints),
            notes=tuple(self.notes),
        )
