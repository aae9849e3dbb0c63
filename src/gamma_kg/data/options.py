"""What a caller may choose about reading, and what reading tells afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gamma_kg.data.ontology import OntologyReader
from gamma_kg.errors import DataError, did_you_mean

FORMATS = ("tsv", "csv", "txt", "parquet", "jsonl", "nt", "nq", "ttl", "trig", "rdf", "jsonld", "n3", "obo")
LITERALS = ("skip", "as-entities")
ONTOLOGY = ("auto", "off")
KEPT_COMPLAINTS = 5


@dataclass(frozen=True)
class ReadOptions:
    """Choices of `read_triples`; the defaults fit a file that is what its name says."""

    columns: Sequence[str | int] | None = None
    """Head, relation and tail column, by header name or by position counted from 0; with `id_column`, the columns to
    take as relations."""
    id_column: str | int | None = None
    """For a table with one row per thing: the column that names the thing; each other column is a relation."""
    edge_relation: str | None = None
    """For a table of two columns (head, tail): the name of the relation that its rows stand for."""
    null_values: Sequence[str] = ()
    """Cells that mean "nothing here", such as NULL or nan; facts with such an end are left out and counted."""
    format: str | None = None
    """One of `FORMATS`; by default from the name's ending, or else from the first lines."""
    header: bool | None = None
    """Whether the first line of a table names its columns; by default looked at."""
    literals: Literal["skip", "as-entities"] = "skip"
    """What becomes of RDF triples whose object is a literal."""
    ontology: Literal["auto", "off"] = "auto"
    """Whether OWL class expressions become relations and its plumbing stays out (`data/ontology.py`)."""
    label_properties: Sequence[str] = ()
    """RDF: properties to take labels from before the usual ones, as IRIs or like skos:prefLabel."""
    languages: Sequence[str] = ("en",)
    """RDF: languages of labels, best first; then labels without a language, then any."""
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
        if isinstance(self.columns, str) or (
            self.columns is not None and self.id_column is None and len(self.columns) != self._num_columns
        ):
            if self.edge_relation is not None:
                raise DataError(f"columns must name two columns (head, tail), got {self.columns!r}")
            raise DataError(f"columns must name three columns (head, relation, tail), got {self.columns!r}")
        if self.format is not None and self.format not in FORMATS:
            hint = did_you_mean(self.format, FORMATS)
            raise DataError(f"no format is named {self.format!r}{hint or ': choose from ' + ', '.join(FORMATS)}")
        if self.literals not in LITERALS:
            raise DataError(f"literals must be one of {', '.join(LITERALS)}, got {self.literals!r}")
        if self.id_column is not None and self.edge_relation is not None:
            raise DataError("give id_column (one row per thing) or edge_relation (a list of edges), not both")
        for name in ("null_values", "label_properties", "languages"):
            if isinstance(getattr(self, name), str):
                raise DataError(f"{name} must be a list of texts, got {getattr(self, name)!r}")
        if self.ontology not in ONTOLOGY:
            raise DataError(f"ontology must be one of {', '.join(ONTOLOGY)}, got {self.ontology!r}")
        for name, least in (("limit", 1), ("page_size", 1), ("retries", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise DataError(f"{name} must be at least {least}, got {value}")
        if self.timeout <= 0:
            raise DataError(f"timeout must be more than 0 seconds, got {self.timeout}")

    @property
    def _num_columns(self) -> int:
        return 3 if self.edge_relation is None else 2


@dataclass(frozen=True)
class ReadReport:
    """What was read and what was left out."""

    rows: int = 0
    """Triples kept."""
    literals_skipped: int = 0
    nulls_skipped: int = 0
    """Facts left out because an end is one of `null_values`."""
    statements_skipped: int = 0
    """RDF about facts (quoted triples, rdf:Statement) instead of about things."""
    bad_lines: int = 0
    files: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    """The first few reasons why a line was left out."""
    notes: tuple[str, ...] = ()
    """What the reader decided by itself and a person should know."""
    axioms: tuple[tuple[str, str, str], ...] = ()
    """What an ontology says of its classes and properties: (kind, IRI, second IRI or "")."""
    doubts: tuple[str, ...] = ()
    """What the reader decided by itself and is nearly always right."""

    @property
    def left_out(self) -> bool:
        """Whether anything of what was there was not read as a fact."""
        return bool(self.literals_skipped or self.nulls_skipped or self.statements_skipped or self.bad_lines)

    def __str__(self) -> str:
        files = ", ".join(self.files) if len(self.files) < 4 else f"{len(self.files)} files"
        parts = [f"{self.rows:,} triples from {files}"]
        if self.literals_skipped:
            parts.append(f"{self.literals_skipped:,} literals skipped")
        if self.nulls_skipped:
            parts.append(f"{self.nulls_skipped:,} facts with a null value skipped")
        if self.statements_skipped:
            parts.append(f"{self.statements_skipped:,} triples about facts (RDF-star, rdf:Statement) skipped")
        if self.bad_lines:
            parts.append(f"{self.bad_lines:,} bad lines skipped (first: {self.complaints[0]})")
        return "; ".join(parts)


@dataclass
class Tally:
    """Counts while reading. `bad` stops at the first damage unless bad lines are to be skipped."""

    options: ReadOptions
    literals_skipped: int = 0
    nulls_skipped: int = 0
    statements_skipped: int = 0
    bad_lines: int = 0
    files: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ontology: OntologyReader | None = field(init=False)

    def __post_init__(self) -> None:
        self.ontology = OntologyReader() if self.options.ontology == "auto" else None

    doubts: list[str] = field(default_factory=list)

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
            nulls_skipped=self.nulls_skipped,
            statements_skipped=self.statements_skipped,
            bad_lines=self.bad_lines,
            files=tuple(self.files),
            complaints=tuple(self.complaints),
            notes=tuple(self.notes),
            axioms=() if self.ontology is None else tuple(self.ontology.axioms),
            doubts=tuple(self.doubts),
        )
