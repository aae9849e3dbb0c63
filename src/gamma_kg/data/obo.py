"""Ontologies in OBO format (the Gene Ontology and its kin), line by line: no library is needed for facts and names.

`is_a`, `relationship`, `intersection_of` (what is new) and `instance_of` are facts, `name`, `synonym` and `alt_id`
names; what is said of relations (`is_transitive`, `domain` …) and `disjoint_from` are axioms; obsolete terms stay out.
Identifiers become the IRIs that the same ontology has in OWL: GO:0008150 is …/obo/GO_0008150.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.lines import line_chunks
from gamma_kg.data.names import LABEL_PROPERTIES, WELL_KNOWN_PREFIXES, RdfNames
from gamma_kg.data.ontology import OntologyReader
from gamma_kg.data.options import Tally
from gamma_kg.data.streams import Input

IS_A = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
SYNONYM = "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym"
LABEL = LABEL_PROPERTIES[0]
RELATION_KINDS = {
    "is_transitive": "transitive",
    "is_symmetric": "symmetric",
    "is_asymmetric": "asymmetric",
    "is_functional": "functional",
    "is_inverse_functional": "inverse functional",
}
# Everything after an unescaped " !" is a comment, a group in braces at the end are qualifiers.
_TRAILER = re.compile(r"(?<!\\)\s+(!.*|\{[^{}]*\}\s*(!.*)?)$")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_CURIE = re.compile(r"([A-Za-z][\w.-]*):(\S+)")


def read_obo(opened: Input, encoder: TripleEncoder, tally: Tally, names: RdfNames) -> None:
    """Reads a whole OBO file; a line that is no `tag: value` is a bad line."""
    reader = _OboReader(encoder, names, tally.ontology)
    for line, kind, tags in _stanzas(opened, tally):
        if not reader.add(kind, tags):
            tally.bad(f"{opened.name} line {line}: the stanza [{kind}] has no id")
    reader.flush()
    if reader.num_obsolete:
        tally.notes.append(f"{opened.name}: {reader.num_obsolete:,} obsolete terms were left out")


class _OboReader:
    def __init__(self, encoder: TripleEncoder, names: RdfNames, axioms: OntologyReader | None) -> None:
        self._encoder = encoder
        self._names, self._axioms = names, axioms
        self._ontology = "obo"
        self._batch: list[tuple[str, str, str]] = []
        self.num_obsolete = 0

    def add(self, kind: str, tags: list[tuple[str, str]]) -> bool:
        """Takes one stanza; False if it has no id."""
        if not kind:
            self._ontology = next((value for tag, value in tags if tag == "ontology"), self._ontology)
            return True
        own = next((value for tag, value in tags if tag == "id"), "")
        if not own:
            return False
        if ("is_obsolete", "true") in tags:
            self.num_obsolete += 1
            return True
        if kind in ("Term", "Typedef", "Instance"):
            self._names.add_label(self._iri(own), SYNONYM, own, None)
            if self._axioms is not None:
                self._axioms.declare(self._iri(own))
                if kind == "Term":
                    self._axioms.declare_class(self._iri(own))
            for tag, value in tags:
                self._add_tag(self._iri(own), kind, tag, value)
        return True

    def flush(self) -> None:
        self._names.add_label(IS_A, SYNONYM, "is_a", None)
        self._encoder.add_rows(self._batch)
        self._batch.clear()

    def _add_tag(self, own: str, kind: str, tag: str, value: str) -> None:
        words = value.split()
        if tag == "name":
            self._names.add_label(own, LABEL, _ESCAPED.sub(r"\1", value), None)
        elif tag == "synonym" and (quoted := _QUOTED.match(value)) and " EXACT" in value:
            self._names.add_label(own, SYNONYM, _ESCAPED.sub(r"\1", quoted[1]), None)
        elif tag == "alt_id":
            self._names.add_label(own, SYNONYM, value, None)
        elif not words:
            return
        elif tag in ("domain", "range") and kind == "Typedef":
            self._add_axiom(tag, own, self._iri(words[0]))
        elif tag == "disjoint_from" and kind == "Term":
            self._add_axiom("disjoint", own, self._iri(words[0]))
        elif kind == "Typedef":  # relations between relations are for reasoners
            if tag in RELATION_KINDS and value == "true":
                self._add_axiom(RELATION_KINDS[tag], own)
        elif tag == "intersection_of" and len(words) == 1 and self._axioms is not None:
            self._axioms.add_axiom("defined", own)
            self._axioms.add_genus(own, self._iri(words[0]))
        elif tag in ("is_a", "intersection_of", "instance_of") and len(words) == 1:
            self._batch.append((own, TYPE if tag == "instance_of" else IS_A, self._iri(words[0])))
        elif tag in ("relationship", "intersection_of") and len(words) >= 2:
            self._batch.append((own, self._iri(words[0]), self._iri(words[1])))
            if kind == "Term":
                self._add_axiom("some", self._iri(words[0]))

    def _add_axiom(self, kind: str, first: str, second: str = "") -> None:
        if self._axioms is not None:
            self._axioms.add_axiom(kind, first, second)

    def _iri(self, identifier: str) -> str:
        if "://" in identifier:
            return identifier
        base = WELL_KNOWN_PREFIXES["obo"]
        curie = _CURIE.fullmatch(identifier)
        return f"{base}{curie[1]}_{curie[2]}" if curie else f"{base}{self._ontology}#{identifier}"


def _stanzas(opened: Input, tally: Tally) -> Iterator[tuple[int, str, list[tuple[str, str]]]]:
    """(line of its head, kind, tags) of every stanza; the header comes first and has no kind."""
    start, kind, tags = 1, "", list[tuple[str, str]]()
    for first, chunk in line_chunks(opened, tally.options.encoding):
        for number, raw in enumerate(chunk.decode("utf-8").split("\n"), first):
            line = raw.strip()
            if not line or line.startswith("!"):
                continue
            if line.startswith("[") and line.endswith("]"):
                yield start, kind, tags
                start, kind, tags = number, line[1:-1], []
                continue
            tag, colon, value = line.partition(":")
            if not colon or not tag.strip():
                tally.bad(f"{opened.name} line {number}: expected `tag: value`, found {line[:60]!r}")
                continue
            tags.append((tag.strip(), _TRAILER.sub("", value.strip()).strip()))
    yield start, kind, tags
