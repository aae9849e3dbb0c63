"""The border between the outside world and the numbers: any file of triples in, ids and vocabularies out.

`read_triples` finds the files and their format, hands each to its reader, and puts one `EncodedTriples`
together. Past this point nothing asks again what the input was.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from gamma_kg.data.encoder import IdArray, TripleEncoder
from gamma_kg.data.formats import find_files, find_format
from gamma_kg.data.frames import add_frame, read_parquet, text_columns, three_columns
from gamma_kg.data.json_lines import read_json_lines
from gamma_kg.data.names import RdfNames
from gamma_kg.data.neo4j_graphs import is_address, read_database
from gamma_kg.data.obo import read_obo
from gamma_kg.data.options import ReadOptions, ReadReport, Tally
from gamma_kg.data.rdf import read_rdf
from gamma_kg.data.reading_progress import reading_progress
from gamma_kg.data.streams import Input, open_input, refuse_foreign
from gamma_kg.data.tables import read_table
from gamma_kg.data.vocabulary import Vocabulary
from gamma_kg.data.wide import add_columns, read_wide
from gamma_kg.errors import ConfigError, DataError, EmptyFileError, did_you_mean
from gamma_kg.io.shown import few

__all__ = ["EncodedTriples", "ReadOptions", "ReadReport", "encode_frame", "encode_triples", "read_triples"]


@dataclass(frozen=True, eq=False)
class EncodedTriples:
    """Triples as ids (int64 [n, 3]: head, relation, tail, as in the file) and the names of the ids."""

    triples: IdArray
    entities: Vocabulary
    relations: Vocabulary
    report: ReadReport


def read_triples(path: str | Path, *, columns: Sequence[str | int] | None = None, **choices: Any) -> EncodedTriples:
    """Reads a file, a folder, `-` (standard input), `sparql:URL` or `neo4j://…`; choices are those of `ReadOptions`."""
    options = read_options({"columns": columns, **choices})
    tally = Tally(options)
    encoder = TripleEncoder()
    names = read_into(path, encoder, tally)
    if encoder.num_triples == 0:
        left_out = f" ({tally.report(0)})" if tally.bad_lines or tally.literals_skipped else ""
        hint = "; keep the literals (literals as-entities)" if tally.literals_skipped else ""
        raise DataError(f"{path}: no triples found{left_out}{hint}")
    report = tally.report(encoder.num_triples)
    entities, relations = names.vocabularies(encoder) if names is not None else _plain(encoder)
    return EncodedTriples(encoder.triples(), entities, relations, report)


def read_into(
    path: str | Path, encoder: TripleEncoder, tally: Tally, names: RdfNames | None = None, scope: str = ""
) -> RdfNames | None:
    """The same into an encoder of the caller's. Returns what RDF told of names, added to `names`, if there was any.

    `scope` marks blank nodes, where several paths are read into one encoder.
    """
    if not str(path):  # a path would take it for the folder one is in
        raise DataError("the name of the graph is empty; give a file, a folder or an address")
    if str(path).startswith("sparql:"):
        from gamma_kg.data.sparql import read_endpoint

        names = read_endpoint(str(path).removeprefix("sparql:"), encoder, tally)
    elif is_address(str(path)):
        names = read_database(str(path), encoder, tally)
    else:
        names = _read_files(find_files(path, tally.options, tally.notes), encoder, tally, names, scope)
    if tally.ontology is not None:
        note = tally.ontology.finish(encoder)
        tally.notes.extend([note] if note else [])
    return names


def read_options(choices: dict[str, Any]) -> ReadOptions:
    """`ReadOptions` from keywords; an unknown one is an error that names the nearest."""
    known = [field.name for field in fields(ReadOptions)]
    for name in choices:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise ConfigError(f"reading has no option {name!r}{hint}")
    return ReadOptions(**choices)


def _read_files(
    paths: list[Path | None], encoder: TripleEncoder, tally: Tally, names: RdfNames | None, scope: str
) -> RdfNames | None:
    """Reads every file with the reader of its format. Returns what RDF told of names, if any file was RDF.

    Empty parts among others are passed over: whatever writes a graph in parts may have had nothing for one of them.
    """
    empty: list[str] = []
    with reading_progress(paths, tally.options.progress) as progress:
        for number, path in enumerate(paths):
            with open_input(path, progress) as opened:
                # Blank nodes are local to a file: two files may both have a _:b0.
                file_scope = f"{scope}file{number}-" if len(paths) > 1 else scope
                try:
                    names = _read_file(opened, path, encoder, tally, names, file_scope)
                    tally.files.append(opened.name)
                except EmptyFileError:
                    if len(paths) == 1:
                        raise
                    empty.append(opened.name)
    if empty:
        tally.notes.append(f"{len(empty)} of {len(paths)} files are empty and were passed over: {few(empty)}")
    return names


def _read_file(
    opened: Input, path: Path | None, encoder: TripleEncoder, tally: Tally, names: RdfNames | None, scope: str
) -> RdfNames | None:
    """Reads one file; returns `names`, with what it told of them if it was RDF."""
    kind = find_format(opened, path, tally.options)
    is_wide = tally.options.id_column is not None
    if kind != "parquet":
        refuse_foreign(opened)
    if is_wide:
        read_wide(opened, path, kind, encoder, tally)
    elif kind == "parquet":
        read_parquet(opened, path, encoder, tally)
    elif kind in ("tsv", "csv", "txt"):
        read_table(opened, kind, encoder, tally)
    elif kind == "jsonl":
        read_json_lines(opened, encoder, tally)
    else:
        names = names or RdfNames(tally.options.label_properties, tally.options.languages)
        if kind == "obo":
            read_obo(opened, encoder, tally, names)
        else:
            read_rdf(opened, kind, encoder, tally, names, scope)
    return names


def encode_frame(
    frame: Any, *, columns: Sequence[str | int] | None = None, id_column: str | int | None = None
) -> EncodedTriples:
    """Triples of a polars or pandas data frame; columns by name or position, else by well-known names or order.

    With `id_column` each row is a thing that this column names, each other column (or those of `columns`) a relation.
    """
    tally = Tally(ReadOptions(columns=columns, id_column=id_column), files=["data frame"])
    encoder = TripleEncoder()
    if id_column is None:
        add_frame(three_columns(frame, columns), "the data frame", 0, encoder, tally)
    else:
        add_columns("the data frame", *text_columns(frame), encoder, tally)
    entities, relations = _plain(encoder)
    return EncodedTriples(encoder.triples(), entities, relations, tally.report(encoder.num_triples))


def encode_triples(
    triples: Iterable[Sequence[Any]],
    *,
    entities: Sequence[str] | None = None,
    relations: Sequence[str] | None = None,
) -> EncodedTriples:
    """Named triples as ids. Given lists fix a vocabulary and its order; a name outside them is an error."""
    given = (
        None if entities is None else Vocabulary(map(_name, entities), "entity"),
        None if relations is None else Vocabulary(map(_name, relations), "relation"),
    )
    encoder = TripleEncoder()
    batch: list[tuple[str, str, str]] = []
    for number, triple in enumerate(triples, 1):
        try:
            head, relation, tail = triple
        except (TypeError, ValueError):
            raise DataError(f"triple {number}: expected (head, relation, tail), got {triple!r}") from None
        batch.append((_name(head, number), _name(relation, number), _name(tail, number)))
        if len(batch) == 100_000:
            encoder.add_rows(batch)
            batch.clear()
    encoder.add_rows(batch)
    found_entities, found_relations = _plain(encoder)
    encoded = encoder.triples()
    for columns, found, fixed in (([0, 2], found_entities, given[0]), ([1], found_relations, given[1])):
        if fixed is not None:
            # The lookup also finds names that are not in the fixed list, and complains.
            fixed_ids = np.fromiter((fixed.id(name, exact=True) for name in found), dtype=np.int64, count=len(found))
            encoded[:, columns] = fixed_ids[encoded[:, columns]]
            fixed.check_distinct()
    report = ReadReport(rows=len(encoded))
    return EncodedTriples(
        encoded,
        found_entities if given[0] is None else given[0],
        found_relations if given[1] is None else given[1],
        report,
    )


def _name(name: Any, number: int | None = None) -> str:
    where = "" if number is None else f"triple {number}: "
    if isinstance(name, bool) or not isinstance(name, str | numbers.Integral):
        raise DataError(f"{where}names must be text or whole numbers, got {name!r}")
    if name == "":
        raise DataError(f"{where}a name is empty")
    text = str(name)
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"{where}the name {name!r} holds half a character (a lone surrogate)")
    return text


def _plain(encoder: TripleEncoder) -> tuple[Vocabulary, Vocabulary]:
    return Vocabulary(encoder.entity_ids, "entity"), Vocabulary(encoder.relation_ids, "relation")
