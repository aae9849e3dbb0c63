"""Proposed facts as RDF: N-Triples and Turtle.

A proposal is a statement about a fact (rdf:Statement with subject, predicate, object, probability …), which every RDF
store understands; it is not the fact. Only when asked (`asserted`) is the fact itself written too.

Resources keep their IRIs, character by character. A name that is no IRI (from a table) gets one under `NAMES`, and
its rdfs:label is the name. A blank node is one within the file, under a label that no statement has. Where RDF forbids
a term (a literal as subject) the fact is not asserted; its statement stands, since a literal may be an object.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from gamma_kg.data.vocabulary import Names
    from gamma_kg.graph.graph import KnowledgeGraph

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
XSD = "http://www.w3.org/2001/XMLSchema#"
PROPERTIES = "urn:gamma:vocabulary:"
NAMES = "urn:gamma:name:"
XSD_TYPES = {float: "double", int: "integer", bool: "boolean"}
_BLANK_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?")


@dataclass(frozen=True)
class Term:
    """A term as N-Triples writes it, and the name that it stands for if its IRI was made here."""

    text: str
    made_for: str | None = None

    @property
    def is_literal(self) -> bool:
        return self.text.startswith('"')


def term_of(identifier: str, is_term: bool) -> Term:
    """The term for an identifier of the graph; `is_term` if the graph was read from RDF, so that it is one already."""
    if is_term and identifier.startswith("_:"):
        label = identifier.removeprefix("_:")
        return Term(f"_:b-{label if _BLANK_LABEL.fullmatch(label) else label.encode().hex()}")
    if is_term and identifier.startswith('"') and is_literal(identifier):
        return Term(identifier)
    if is_iri(identifier) and not identifier.startswith(NAMES):
        return Term(_reference(identifier))
    # Names under NAMES in RDF were made here before, and are read back as what they were.
    if is_term and is_iri(identifier):
        return Term(_reference(identifier))
    return Term(f"<{NAMES}{quote(identifier, safe='', errors='replace')}>", made_for=identifier)


def _reference(iri: str) -> str:
    """An IRI between its brackets; the wide spaces of Unicode, which it may hold, are escaped: rdflib ends it there."""
    return "<" + re.sub(r"\s", lambda found: f"\\u{ord(found[0]):04X}", iri) + ">"


def is_iri(text: str) -> bool:
    """Whether the text is an absolute IRI as RDF wants it."""
    import pyoxigraph as ox

    try:
        ox.NamedNode(text)
    except ValueError:
        return False
    return True


def is_literal(text: str) -> bool:
    """Whether the text is a literal as N-Triples writes it."""
    import pyoxigraph as ox

    try:
        (quad,) = ox.parse(f"<x:s> <x:p> {text} .".encode(), format=ox.RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError):
        return False
    return isinstance(quad.object, ox.Literal)


def write_ntriples(file: IO[str], rows: Iterable[Mapping[str, Any]], kg: KnowledgeGraph, asserted: bool) -> None:
    """One statement a row; its node is _:factN, which no blank node of the graph is called here."""
    labelled: set[str] = set()
    for number, row in enumerate(rows):
        head, relation, tail = terms = _terms(row, kg)
        fact = f"_:fact{number}"
        lines = [f"{fact} <{RDF}type> <{RDF}Statement>"]
        if asserted and not head.is_literal:
            lines.insert(0, f"{head.text} {relation.text} {tail.text}")
        for name, term in zip(("subject", "predicate", "object"), terms, strict=True):
            lines.append(f"{fact} <{RDF}{name}> {term.text}")
        for name, value, kind in _numbers(row):
            lines.append(f'{fact} <{PROPERTIES}{name}> "{value}"^^<{XSD}{kind}>')
        lines += [f"{made.text} <{RDFS_LABEL}> {_string(made.made_for)}" for made in _new(terms, labelled)]
        file.write("".join(line + " .\n" for line in lines))


def write_turtle(file: IO[str], rows: Iterable[Mapping[str, Any]], kg: KnowledgeGraph, asserted: bool) -> None:
    """The same for people: one block a row, its statement without a name."""
    file.write(f"@prefix rdf: <{RDF}> .\n@prefix rdfs: <{RDFS_LABEL.removesuffix('label')}> .\n")
    file.write(f"@prefix xsd: <{XSD}> .\n@prefix gamma: <{PROPERTIES}> .\n")
    labelled: set[str] = set()
    for row in rows:
        head, relation, tail = terms = _terms(row, kg)
        file.write("\n")
        if asserted and not head.is_literal:
            file.write(f"{head.text} {relation.text} {tail.text} .\n")
        parts = ["[] a rdf:Statement"]
        parts += [
            f"rdf:{name} {term.text}" for name, term in zip(("subject", "predicate", "object"), terms, strict=True)
        ]
        parts += [f'gamma:{name} "{value}"^^xsd:{kind}' for name, value, kind in _numbers(row)]
        file.write(" ;\n    ".join(parts) + " .\n")
        for made in _new(terms, labelled):
            file.write(f"{made.text} rdfs:label {_string(made.made_for)} .\n")


def _terms(row: Mapping[str, Any], kg: KnowledgeGraph) -> tuple[Term, Term, Term]:
    return (
        _term(kg.entities, kg.entity_id(row["head"])),
        _term(kg.relations, kg.relation_id(row["relation"])),
        _term(kg.entities, kg.entity_id(row["tail"])),
    )


def _term(names: Names, index: int) -> Term:
    return term_of(names.identifier(index), names.has_terms)


def _new(terms: Iterable[Term], labelled: set[str]) -> Iterator[Term]:
    """The terms made here that have no label in the file yet."""
    for term in terms:
        if term.made_for is not None and term.text not in labelled:
            labelled.add(term.text)
            yield term


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, cell in row.items():
        kind = XSD_TYPES.get(type(cell))
        if kind == "double" and not math.isfinite(cell):
            yield name, "NaN" if math.isnan(cell) else "INF" if cell > 0 else "-INF", kind
        elif kind is not None:
            yield name, str(cell).lower() if kind == "boolean" else str(cell), kind


def _string(text: str | None) -> str:
    import pyoxigraph as ox

    return str(ox.Literal((text or "").encode("utf-8", "replace").decode()))
