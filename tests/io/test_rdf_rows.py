"""Proposals as RDF, judged by rdflib and pyoxigraph: resources keep their IRIs, nothing is asserted unless asked."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from gamma_kg import DataError, KnowledgeGraph
from gamma_kg.io.rdf_rows import NAMES, RDF, is_iri
from gamma_kg.io.rows import write_rows

ENDINGS = (".nt", ".ttl")
IRIS = (
    "http://example.org/Köln",
    "http://example.org/Z%C3%BCrich",
    "http://example.org/Zürich",
    "mailto:ann@example.org",
    "doi:10.1000/182",
    "urn:isbn:0451450523",
    "urn:gamma:name:Ann",
    "tag:x@example.org,2020:a",
    "http://example.org/a'b(c)*;,=+$&!~#d",
    "http://日本.example/語?q=1#f",
)
ANY = st.characters(exclude_categories=["Cs"])
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def graph_of(tmp_path: Path, nodes: list[str], relation: str = "http://example.org/p") -> KnowledgeGraph:
    """A chain of terms as N-Triples writes them, read as a user would."""
    lines = [f"{a} <{relation}> {b} .\n" for a, b in pairwise(nodes)]
    (tmp_path / "in.nt").write_text("".join(lines), "utf-8")
    return KnowledgeGraph.from_file(tmp_path / "in.nt", literals="as-entities")


def row(kg: KnowledgeGraph, head: int, tail: int) -> dict[str, object]:
    return {"head": kg.entities[head], "relation": kg.relations[0], "tail": kg.entities[tail], "probability": 0.25}


def statements(path: Path, judge: str) -> list[tuple[str, str, str]]:
    """(subject, predicate, object) of every rdf:Statement, each as its value."""
    if judge == "rdflib":
        graph = rdflib.Graph().parse(path, format="nt" if path.suffix == ".nt" else "turtle")
        value, found = (lambda s, part: str(graph.value(s, rdflib.RDF[part]))), graph.subjects(rdflib.RDF.type)
        return [tuple(value(s, part) for part in ("subject", "predicate", "object")) for s in found]  # type: ignore[misc]
    store = ox.Store()
    store.load(path=path)
    type_, statement = ox.NamedNode(RDF + "type"), ox.NamedNode(RDF + "Statement")
    parts = [ox.NamedNode(RDF + part) for part in ("subject", "predicate", "object")]
    found = [quad.subject for quad in store.quads_for_pattern(None, type_, statement)]
    return [tuple(next(store.quads_for_pattern(s, part, None)).object.value for part in parts) for s in found]  # type: ignore[misc]


def triples(path: Path) -> set[tuple[str, str, str]]:
    found = ox.parse(path=path)
    return {(str(q.subject), str(q.predicate), str(q.object)) for q in found if not q.predicate.value.startswith(RDF)}


@pytest.mark.parametrize("judge", ["rdflib", "pyoxigraph"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("iri", IRIS)
def test_a_resource_is_never_renamed(tmp_path: Path, iri: str, ending: str, judge: str) -> None:
    kg = graph_of(tmp_path, [f"<{iri}>", "<http://example.org/b>"], relation=iri)
    write_rows(tmp_path / f"out{ending}", [row(kg, 1, 0)], kg)
    assert statements(tmp_path / f"out{ending}", judge) == [("http://example.org/b", iri, iri)]


@SETTINGS
@given(path=st.text(ANY, max_size=20), scheme=st.sampled_from(["http://e/", "x:", "urn:a:"]))
@example(path="a\u2003b\u3000", scheme="http://e/")  # wide spaces
def test_any_iri_survives_both_ways(tmp_path: Path, path: str, scheme: str) -> None:
    iri = scheme + path
    assume(is_iri(iri))
    kg = graph_of(tmp_path, [f"<{iri}>", "<http://example.org/b>", "<http://example.org/c>"])
    for ending in ENDINGS:
        write_rows(tmp_path / f"out{ending}", [row(kg, 0, 2)], kg, asserted=True)
        fact = (f"<{iri}>", "<http://example.org/p>", "<http://example.org/c>")
        assert fact in triples(tmp_path / f"out{ending}")
        read = rdflib.Graph().parse(tmp_path / f"out{ending}", format="nt" if ending == ".nt" else "turtle")
        assert (
            rdflib.URIRef(iri),
            rdflib.URIRef("http://example.org/p"),
            rdflib.URIRef("http://example.org/c"),
        ) in read
        for again in (KnowledgeGraph.from_file(tmp_path / f"out{ending}"), KnowledgeGraph.from_rdflib(read)):
            assert iri in [again.entities.identifier(i) for i in range(again.num_entities)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_proposals_are_not_asserted_unless_asked(tmp_path: Path, ending: str) -> None:
    kg = graph_of(tmp_path, ["<http://e.org/a>", "<http://e.org/b>", "<http://e.org/c>"])
    fact = ("<http://e.org/a>", "<http://example.org/p>", "<http://e.org/c>")
    write_rows(tmp_path / f"out{ending}", [row(kg, 0, 2)], kg)
    assert fact not in triples(tmp_path / f"out{ending}")
    write_rows(tmp_path / f"out{ending}", [row(kg, 0, 2)], kg, asserted=True)
    assert fact in triples(tmp_path / f"out{ending}")


def test_a_table_has_nothing_to_assert(family: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only RDF can assert facts"):
        write_rows(tmp_path / "out.csv", [], family, asserted=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_literal_is_never_a_subject(tmp_path: Path, ending: str) -> None:
    kg = graph_of(tmp_path, ["<http://e.org/a>", '"Ann \\"A\\" \\u0041\\n"@en'])
    out = tmp_path / f"out{ending}"
    write_rows(out, [row(kg, 1, 0), row(kg, 0, 1)], kg, asserted=True)
    heads = {quad.subject for quad in ox.parse(path=out) if quad.predicate.value == "http://example.org/p"}
    assert heads == {ox.NamedNode("http://e.org/a")}
    assert sorted(statements(out, "rdflib")) == [
        ('Ann "A" A\n', "http://example.org/p", "http://e.org/a"),
        ("http://e.org/a", "http://example.org/p", 'Ann "A" A\n'),
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_blank_nodes_stay_blank_and_are_no_statements(tmp_path: Path, ending: str) -> None:
    kg = graph_of(tmp_path, ["_:fact0", "<http://e.org/b>", "_:fact1"])
    write_rows(tmp_path / f"out{ending}", [row(kg, 0, 1), row(kg, 2, 0)], kg, asserted=True)
    quads = list(ox.parse(path=tmp_path / f"out{ending}"))
    facts = [quad for quad in quads if quad.predicate.value == "http://example.org/p"]
    assert isinstance(facts[0].subject, ox.BlankNode) and facts[1].object == facts[0].subject
    is_statement = {quad.subject for quad in quads if quad.predicate.value == RDF + "type"}
    assert len(is_statement) == 2 and not is_statement & {end for f in facts for end in (f.subject, f.object)}


@SETTINGS
@given(names=st.lists(st.text(ANY, min_size=1), min_size=3, max_size=3, unique=True))
def test_names_of_a_table_come_back_as_they_were(tmp_path: Path, names: list[str]) -> None:
    kg = KnowledgeGraph.from_triples([(names[0], "knows of", names[1]), (names[1], "knows of", names[2])])
    for ending in ENDINGS:
        write_rows(tmp_path / f"out{ending}", [row(kg, 0, 2)], kg, asserted=True)
        quads = list(ox.parse(path=tmp_path / f"out{ending}"))
        (fact,) = (quad for quad in quads if "knows" in quad.predicate.value)
        labels = {quad.subject: quad.object.value for quad in quads if quad.predicate.value.endswith("#label")}
        for end, name in ((fact.subject, names[0]), (fact.object, names[2])):
            assert labels[end] == name if end.value.startswith(NAMES) else end.value == name


def test_names_that_look_like_terms_stay_names(tmp_path: Path) -> None:
    kg = KnowledgeGraph.from_triples([("_:x", '"p"', '"quoted"')])
    write_rows(tmp_path / "out.nt", [row(kg, 0, 1)], kg, asserted=True)
    fact = next(ox.parse(path=tmp_path / "out.nt"))
    terms = (fact.subject, fact.predicate, fact.object)
    assert all(isinstance(term, ox.NamedNode) and term.value.startswith(NAMES) for term in terms)
