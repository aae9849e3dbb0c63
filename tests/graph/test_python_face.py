"""A graph as Python people use one: len, in, for, frames in and out, other libraries, parts and changes."""

from __future__ import annotations

import networkx
import pandas
import polars as pl
import pytest
import rdflib

from gamma_kg import DataError, KnowledgeGraph
from gamma_kg.errors import UnknownNameError

FACTS = [("Ann", "knows", "Bob"), ("Bob", "knows", "Cleo"), ("Cleo", "likes", "Ann")]


@pytest.fixture
def people() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(FACTS)


def test_a_graph_is_a_collection_of_facts(people: KnowledgeGraph) -> None:
    assert len(people) == 3 and list(people) == FACTS
    assert ("Ann", "knows", "Bob") in people and "Ann" in people
    assert ("Bob", "knows", "Ann") not in people and ("Ann", "knows", "Zoe") not in people and "Zoe" not in people
    assert bool(people.without(FACTS)) and len(people.without(FACTS)) == 0


def test_facts_are_added_and_taken_away(people: KnowledgeGraph) -> None:
    more = people.add([("Zoe", "knows", "Ann"), ("Ann", "knows", "Bob"), ("Ann", "dislikes", "Zoe")])
    assert list(more) == [*FACTS, ("Zoe", "knows", "Ann"), ("Ann", "dislikes", "Zoe")]
    assert more.entities[:3] == people.entities[:3] and len(people) == 3
    less = more.without([("Bob", "knows", "Cleo")])
    assert ("Bob", "knows", "Cleo") not in less and less.num_entities == more.num_entities
    with pytest.raises(DataError, match=r"does not hold the fact \('Ann', 'likes', 'Bob'\)"):
        people.without([("Ann", "likes", "Bob")])
    with pytest.raises(DataError, match="expected a fact"):
        people.add([("Ann", "knows")])  # type: ignore[list-item]


def test_names_of_another_case_are_new_names_when_facts_are_added(people: KnowledgeGraph) -> None:
    assert people.add([("ann", "knows", "Bob")]).num_entities == 4


def test_a_part_of_a_graph_is_a_graph(people: KnowledgeGraph) -> None:
    assert list(people.subgraph(["Ann", "Bob"])) == FACTS[:1]
    assert list(people.subgraph(["Ann"], hops=1)) == FACTS
    assert list(people.subgraph(relations=["likes"])) == FACTS[2:]
    with pytest.raises(UnknownNameError, match="no entity is named 'Zoe'"):
        people.subgraph(["Zoe"])
    with pytest.raises(DataError, match="no fact of the graph lies in the part"):
        people.subgraph(["Ann"])


@pytest.mark.parametrize("library", [pl, pandas])
def test_a_graph_goes_through_a_data_frame(people: KnowledgeGraph, library) -> None:
    frame = people.to_dataframe(library.__name__)
    assert isinstance(frame, library.DataFrame)
    assert list(frame.columns) == ["head", "relation", "tail", "head_id", "relation_id", "tail_id"]
    assert list(KnowledgeGraph.from_dataframe(frame)) == FACTS


def test_an_rdflib_graph_keeps_iris_labels_and_prefixes() -> None:
    graph = rdflib.Graph().parse(
        data="""@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        e:a e:p e:b ; rdfs:label "Köln"@de, "Cologne"@en ; e:age 5 . _:x e:p e:a .""",
        format="turtle",
    )
    kg = KnowledgeGraph.from_rdflib(graph)
    assert ("Cologne", "e:p", "e:b") in kg and kg.entity_id("Köln") == kg.entity_id("http://e.org/a")
    assert len(kg) == 2 and kg.report is not None and kg.report.literals_skipped == 3
    assert len(KnowledgeGraph.from_rdflib(graph, literals="as-entities")) == 5
    part = kg.subgraph(["Cologne", "e:b"])
    assert part.entities.identifier(part.entity_id("Köln")) == "http://e.org/a"


def test_restrictions_of_an_rdflib_graph_are_relations() -> None:
    graph = rdflib.Graph().parse(
        data="""@prefix e: <http://e.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . e:M a owl:Class ; rdfs:subClassOf
        [ a owl:Restriction ; owl:onProperty e:hasTopping ; owl:someValuesFrom e:Tomato ] .""",
        format="turtle",
    )
    assert ("e:M", "e:hasTopping", "e:Tomato") in KnowledgeGraph.from_rdflib(graph)


def test_a_networkx_graph_gives_relations_from_attributes_keys_or_a_default() -> None:
    directed = networkx.MultiDiGraph()
    directed.add_edge(1, 2, key="k")
    directed.add_edge(1, 2, relation="r")
    assert set(KnowledgeGraph.from_networkx(directed)) == {("1", "k", "2"), ("1", "r", "2")}
    plain = networkx.Graph([("a", "b")])
    assert set(KnowledgeGraph.from_networkx(plain)) == {("a", "linked to", "b"), ("b", "linked to", "a")}
    with pytest.raises(DataError, match="expected a networkx graph, got str"):
        KnowledgeGraph.from_networkx("x")


EVIL = "<script>alert(1)</script>\x1b\u202e"


def test_what_a_notebook_shows_holds_no_markup_of_a_name() -> None:
    kg = KnowledgeGraph.from_triples([(EVIL, EVIL, "b"), *[(f"n{i}", "r", "b") for i in range(12)]])
    for html in (kg._repr_html_(), kg.describe(search="script")._repr_html_()):
        assert "<script" not in html and "\x1b" not in html and "\u202e" not in html and "&lt;script&gt;" in html
    assert "and 3 more facts" in kg._repr_html_()
