"""RDF in any syntax through pyoxigraph, streaming: named graphs are read as one, literals counted or kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import IO, cast

import pyoxigraph as ox

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.lines import line_chunks
from gamma_kg.data.names import RdfNames
from gamma_kg.data.options import Tally
from gamma_kg.data.streams import Input
from gamma_kg.data.xml_entities import guarded
from gamma_kg.errors import DataError

RDF_FORMATS = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "nq": ox.RdfFormat.N_QUADS,
    "ttl": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "rdf": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
    "n3": ox.RdfFormat.N3,
}
# Relative IRIs need something to stand on; this name is reserved and can't be a real host.
BASE_IRI = "http://local.invalid/"
BATCH_ROWS = 100_000
# How much is given to the parser after a bad line, and twice as much each time that goes well: where every line is bad,
# all that is left would be copied for each of them.
AFTER_DAMAGE_BYTES, AFTER_DAMAGE_LINES = 1 << 12, 100
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PARTS_OF_STATEMENT = {RDF + name for name in ("subject", "predicate", "object", "reifies")}
# Said again in our own words before the reason.
_POSITION = re.compile(
    r"^(Parser error )?(at|between) line \d+ (between )?columns? \d+( and (line \d+ )?(column )?\d+)?:? *"
)
_ANONYMOUS = re.compile(r"[0-9a-f]{20,32}")


def read_rdf(opened: Input, kind: str, encoder: TripleEncoder, tally: Tally, names: RdfNames, scope: str) -> None:
    """Reads a whole RDF file; `scope` goes in front of the names of its blank nodes."""
    collector = QuadCollector(encoder, tally, names, scope)
    if kind in ("nt", "nq"):
        for first, chunk in line_chunks(opened, tally.options.encoding):
            _read_lines(opened.name, kind, first, chunk, collector)
    else:
        _read_document(opened, kind, collector)
    collector.flush()


class QuadCollector:
    """Turns quads into named triples in batches, and hands labels and prefixes to `RdfNames`."""

    def __init__(self, encoder: TripleEncoder, tally: Tally, names: RdfNames, scope: str = "") -> None:
        self._encoder = encoder
        self._names = names
        self.scope = scope
        self._keeps_literals = tally.options.literals == "as-entities"
        self._ontology = tally.ontology
        self._anonymous: dict[str, str] = {}
        self._batch: list[tuple[str, str, str]] = []
        self.tally = tally

    def add(self, subject: object, predicate: ox.NamedNode, object_: object) -> None:
        """One triple of pyoxigraph terms."""
        relation = predicate.value
        if isinstance(subject, ox.Triple) or isinstance(object_, ox.Triple) or self._is_of_statement(relation, object_):
            self.tally.statements_skipped += 1
            return
        head = self._name(subject)
        if isinstance(object_, ox.Literal):
            if self._names.is_name(relation):
                self._names.add_label(head, relation, object_.value, object_.language)
            if self._ontology is not None:
                self._ontology.take_literal(head, relation, object_.value)
            if not self._keeps_literals:
                self.tally.literals_skipped += 1
                return
        tail = self._name(object_)
        if self._ontology is not None and self._ontology.takes(head, relation, tail):
            return
        self._batch.append((head, relation, tail))
        if len(self._batch) >= BATCH_ROWS:
            self.flush()

    def _is_of_statement(self, relation: str, object_: object) -> bool:
        """Whether it says which fact a statement is about (reified): that is no link between things."""
        is_type = relation == RDF + "type" and isinstance(object_, ox.NamedNode) and object_.value == RDF + "Statement"
        return self._ontology is not None and (is_type or relation in PARTS_OF_STATEMENT)

    def flush(self) -> None:
        """Encodes what has been collected."""
        self._encoder.add_rows(self._batch)
        self._batch.clear()

    def add_prefixes(self, prefixes: dict[str, str]) -> None:
        """Keeps the prefixes that a document declares; the first meaning of a prefix stays."""
        for prefix, iri in prefixes.items():
            self._names.prefixes.setdefault(prefix, iri)

    def _name(self, term: object) -> str:
        if isinstance(term, ox.NamedNode):
            return term.value
        if isinstance(term, ox.BlankNode):
            return f"_:{self.scope}{self._blank(term.value)}"
        return str(term)

    def _blank(self, name: str) -> str:
        # Nodes written [] get a random name from the parser; the same file must give the same names.
        if not _ANONYMOUS.fullmatch(name):
            return name
        return self._anonymous.setdefault(name, f"anonymous{len(self._anonymous) + 1}")


def _read_lines(name: str, kind: str, first: int, chunk: bytes, collector: QuadCollector) -> None:
    """N-Triples and N-Quads: one statement a line, so a bad line can be left out alone."""
    if b"\r" in chunk:  # ends a line wherever it stands: the parser counts it so
        chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    start, size = 0, len(chunk)
    while start < len(chunk):
        end = chunk.find(b"\n", start + size) + 1 or len(chunk)
        held = None  # the last fact, until its line is over: a bad line may begin with a whole fact
        try:
            for quad in ox.parse(chunk[start:end], format=RDF_FORMATS[kind]):
                if held is not None:
                    collector.add(*held)
                held = quad.subject, quad.predicate, quad.object
            if held is not None:
                collector.add(*held)
            first += chunk.count(b"\n", start, end)
            start, size = end, 2 * size
        except SyntaxError as error:
            bad, reason, go_on = _bad_line(chunk, start, kind, error)
            if held is not None and not _begins_whole(chunk[bad:go_on], kind):
                collector.add(*held)
            first += chunk.count(b"\n", start, bad)
            collector.tally.bad(f"{name} line {first}{_column(reason)}: {_reason(reason)}")
            first += chunk.count(b"\n", bad, go_on)
            start, size = go_on, AFTER_DAMAGE_BYTES


def _bad_line(chunk: bytes, start: int, kind: str, error: SyntaxError) -> tuple[int, SyntaxError, int]:
    """Where the bad line begins, what is wrong with it, and where to go on.

    A line that breaks off is noticed by the parser at the line after it, which may be sound.
    """
    noticed = start
    for _ in range((error.lineno or 1) - 1):
        noticed = chunk.find(b"\n", noticed) + 1 or len(chunk)
    end = max(start, noticed - 1)
    begin = chunk.rfind(b"\n", start, end) + 1 or start
    try:
        list(ox.parse(chunk[begin:end], format=RDF_FORMATS[kind]))
    except SyntaxError as alone:
        return begin, alone, noticed
    return noticed, error, chunk.find(b"\n", noticed) + 1 or len(chunk)


def _begins_whole(line: bytes, kind: str) -> bool:
    try:
        return next(ox.parse(line, format=RDF_FORMATS[kind]), None) is not None
    except SyntaxError:
        return False


def _read_document(opened: Input, kind: str, collector: QuadCollector) -> None:
    """Turtle, TriG, N3, RDF/XML, JSON-LD: read as a stream up to the end or the first error."""
    chunks = line_chunks(opened, collector.tally.options.encoding, max_line=None)
    stream = _ChunkStream(guarded(opened.name, chunks) if kind == "rdf" else chunks)
    if collector.tally.options.skip_bad_lines and kind in ("ttl", "n3"):
        _read_turtle_around_damage(opened.name, kind, stream.read(), collector)
        return
    parser = ox.parse(cast(IO[bytes], stream), format=RDF_FORMATS[kind], base_iri=BASE_IRI)
    try:
        for at, quad in enumerate(parser):
            if at == 0:  # those of RDF/XML belong to its outermost element, and are gone when that ends
                collector.add_prefixes(parser.prefixes)
            collector.add(quad.subject, quad.predicate, quad.object)
    except SyntaxError as error:
        line = f" line {error.lineno}{_column(error)}" if error.lineno else ""
        collector.tally.bad(f"{opened.name}{line}: {_reason(error)}")
        collector.tally.notes.append(f"{opened.name}: nothing was read after{line or ' the damage'}")
    except (ValueError, OSError) as error:
        raise DataError(f"{opened.name}: {_reason(error)}") from error
    collector.add_prefixes(parser.prefixes)


def _read_turtle_around_damage(name: str, kind: str, text: bytes, collector: QuadCollector) -> None:
    """Starts again after each bad statement, with the prefixes known so far."""
    lines = text.splitlines(keepends=True)
    start = 0
    prefixes: dict[str, str] = {}
    while start < len(lines):
        known = "".join(f"@prefix {prefix}: <{iri}> . " for prefix, iri in prefixes.items()).encode()
        # As a stream: where every statement is bad, all that is left would be copied for each of them.
        rest = ((0, b"".join(lines[i : i + AFTER_DAMAGE_LINES])) for i in range(start, len(lines), AFTER_DAMAGE_LINES))
        stream = _ChunkStream(chain([(0, known)] if known else [], rest))
        parser = ox.parse(cast(IO[bytes], stream), format=RDF_FORMATS[kind], base_iri=BASE_IRI)
        try:
            for quad in parser:
                collector.add(quad.subject, quad.predicate, quad.object)
            start = len(lines)
        except SyntaxError as error:
            bad = start + (error.lineno or 1) - 1
            collector.tally.bad(f"{name} line {bad + 1}: {_reason(error)}")
            start = bad + 1
            while start < len(lines) and not lines[start - 1].rstrip().endswith(b"."):
                start += 1
        prefixes.update(parser.prefixes)
    collector.add_prefixes(prefixes)


class _ChunkStream:
    """The chunks of a text as the file object that the parser reads from."""

    def __init__(self, chunks: Iterator[tuple[int, bytes]]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            return self._rest + b"".join(chunk for _, chunk in self._chunks)
        if not self._rest:
            self._rest = next(self._chunks, (0, b""))[1]
        block, self._rest = self._rest[:size], self._rest[size:]
        return block


def _column(error: SyntaxError) -> str:
    return f" column {error.offset}" if error.offset else ""


def _reason(error: Exception) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return " ".join(_POSITION.sub("", text).split())
