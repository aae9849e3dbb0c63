"""Ontologies as files: OBO is read, other syntaxes of OWL name the program that turns them into RDF."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError

OBO = """format-version: 1.2
ontology: go

[Term]
id: GO:0000001
name: mitochondrion inheritance ! not a part of the name
synonym: "mitochondrial \\"inheritance\\"" EXACT []
synonym: "something else" RELATED []
alt_id: GO:0009999
is_a: GO:0000002 {source="x"} ! organelle inheritance
relationship: part_of GO:0000003 ! thing

[Term]
id: GO:0000002
name: organelle inheritance
intersection_of: GO:0000003
intersection_of: BFO:0000050 GO:0000001

[Term]
id: GO:0000004
name: gone
is_obsolete: true
is_a: GO:0000002

[Typedef]
id: part_of
name: part of
is_transitive: true
"""
BASE = "http://purl.obolibrary.org/obo/"


def test_obo_gives_facts_labels_and_iris(tmp_path: Path) -> None:
    (tmp_path / "go.obo").write_text(OBO)
    encoded = read_triples(tmp_path / "go.obo")
    facts = [(encoded.entities[h], encoded.relations[r], encoded.entities[t]) for h, r, t in encoded.triples]
    assert facts == [
        ("mitochondrion inheritance", "rdfs:subClassOf", "organelle inheritance"),
        ("mitochondrion inheritance", "part of", "obo:GO_0000003"),
        ("organelle inheritance", "obo:BFO_0000050", "mitochondrion inheritance"),
        ("organelle inheritance", "rdfs:subClassOf", "obo:GO_0000003"),
    ]
    for name in ("GO:0000001", "GO:0009999", 'mitochondrial "inheritance"', BASE + "GO_0000001"):
        assert encoded.entities.id(name) == 0
    assert encoded.relations.id("is_a") == 0 and encoded.relations.identifier(1) == BASE + "go#part_of"
    assert "something else" not in encoded.entities
    assert "1 obsolete terms were left out" in encoded.report.notes[0]


def test_obo_is_known_by_its_first_line_and_bad_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "go").write_text(OBO)
    assert len(read_triples(tmp_path / "go").triples) == 4
    (tmp_path / "go.obo").write_text(OBO.replace("is_transitive: true", "what is this") + "[Term]\nname: no id\n")
    with pytest.raises(DataError, match=r"go.obo line 28: expected `tag: value`, found 'what is this'"):
        read_triples(tmp_path / "go.obo")
    assert read_triples(tmp_path / "go.obo", skip_bad_lines=True).report.bad_lines == 2


@pytest.mark.parametrize(
    ("name", "text", "syntax"),
    [
        ("p.ofn", "Prefix(:=<http://e.org/>)\nOntology(<http://e.org/>)", "functional"),
        ("p.owl", "# made by hand\nOntology(<http://e.org/>)", "functional"),
        ("p.omn", "Prefix: : <http://e.org/>\nOntology: <http://e.org/>", "Manchester"),
        ("p.owx", '<?xml version="1.0"?>\n<!-- x --><Ontology xmlns="http://www.w3.org/2002/07/owl#"/>', "XML"),
        ("p.owl", '<!DOCTYPE Ontology [<!ENTITY a "b">]><Ontology xmlns="x"/>', "XML"),
    ],
)
def test_other_syntaxes_name_the_converter(tmp_path: Path, name: str, text: str, syntax: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(
        DataError, match=f"OWL in {syntax} syntax is not RDF; .* robot convert --input {name} --output p.ttl"
    ):
        read_triples(tmp_path / name)


def test_turtle_in_an_owl_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.owl").write_text("@prefix e: <http://e.org/> . e:a e:p e:b .")
    assert len(read_triples(tmp_path / "p.owl").triples) == 1
