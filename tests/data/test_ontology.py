"""Ontologies: class expressions become relations, plumbing stays out, axioms are kept; other RDF is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamma_kg import DataError, KnowledgeGraph
from gamma_kg.graph.store.index import index_files
from gamma_kg.rules import rules_of

PREFIXES = """
@prefix : <http://pizza.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
PIZZA = (
    PREFIXES
    + """
<http://pizza.example/> a owl:Ontology ; owl:imports <http://elsewhere.example/> .
:hasTopping a owl:ObjectProperty, owl:AsymmetricProperty ; rdfs:domain :Pizza ; rdfs:range :Topping .
:hasBase a owl:ObjectProperty, owl:FunctionalProperty .
:editor a owl:AnnotationProperty .
:Margherita a owl:Class ; :editor :somebody ; rdfs:subClassOf :Pizza ,
    [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:someValuesFrom :Mozzarella ] ,
    [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:allValuesFrom [ owl:unionOf ( :Mozzarella :Tomato ) ] ] ,
    [ a owl:Restriction ; owl:onProperty [ owl:inverseOf :servedWith ] ; owl:someValuesFrom :Wine ] ,
    [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:onClass :Basil ; owl:minQualifiedCardinality 1 ] ,
    [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:onClass :Ham ; owl:minQualifiedCardinality 0 ] .
:CheesyPizza owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( :Pizza
    [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:someValuesFrom :Cheese ] ) ] .
:Spicy owl:equivalentClass [ owl:unionOf ( :Hot :Medium ) ] .
:Country owl:equivalentClass [ owl:oneOf ( :Italy :France ) ] .
:dinner a [ a owl:Restriction ; owl:onProperty :hasDrink ; owl:hasValue :water ] .
[] a owl:AllDisjointClasses ; owl:members ( :Pizza :Topping :Wine ) .
:Mozzarella rdfs:subClassOf :Cheese . :Cheese owl:disjointWith :Tomato .
:Old a owl:Class ; owl:deprecated true ; rdfs:subClassOf :Pizza .
:Newer rdfs:subClassOf :Old , :Pizza .
[] a owl:Axiom ; owl:annotatedSource :Margherita ; owl:annotatedProperty rdfs:subClassOf ; owl:annotatedTarget :Pizza .
"""
)


def facts(path: Path, **options: str) -> set[tuple[str, str, str]]:
    kg = KnowledgeGraph.from_file(path, **options)
    word = [kg.entities.identifier(i).rsplit("#")[-1] for i in range(kg.num_entities)]
    verb = [kg.relations.identifier(i).rsplit("#")[-1] for i in range(kg.num_relations)]
    return {(word[h], verb[r], word[t]) for h, r, t in kg.triples.tolist()}


@pytest.fixture
def pizza(tmp_path: Path) -> Path:
    path = tmp_path / "pizza.ttl"
    path.write_text(PIZZA)
    return path


def test_class_expressions_become_facts_and_nothing_else_is_left(pizza: Path) -> None:
    assert facts(pizza) == {
        ("Margherita", "subClassOf", "Pizza"),
        ("Margherita", "hasTopping", "Mozzarella"),
        ("Margherita", "hasTopping", "Basil"),
        ("Wine", "servedWith", "Margherita"),
        ("CheesyPizza", "subClassOf", "Pizza"),
        ("CheesyPizza", "hasTopping", "Cheese"),
        ("Hot", "subClassOf", "Spicy"),
        ("Medium", "subClassOf", "Spicy"),
        ("Italy", "type", "Country"),
        ("France", "type", "Country"),
        ("dinner", "hasDrink", "water"),
        ("Mozzarella", "subClassOf", "Cheese"),
        ("Newer", "subClassOf", "Pizza"),
    }


def test_axioms_and_what_was_left_out_are_reported(pizza: Path) -> None:
    kg = KnowledgeGraph.from_file(pizza)
    assert kg.report is not None
    found = {(kind, a.rsplit("#")[-1], b.rsplit("#")[-1]) for kind, a, b in kg.report.axioms}
    assert found == {
        ("asymmetric", "hasTopping", ""),
        ("functional", "hasBase", ""),
        ("property", "hasTopping", ""),
        ("property", "hasBase", ""),
        ("class", "Margherita", ""),
        ("domain", "hasTopping", "Pizza"),
        ("range", "hasTopping", "Topping"),
        ("disjoint", "Pizza", "Topping"),
        ("disjoint", "Pizza", "Wine"),
        ("disjoint", "Topping", "Wine"),
        ("disjoint", "Cheese", "Tomato"),
        ("some", "hasTopping", ""),
        ("some", "hasDrink", ""),
        ("defined", "CheesyPizza", ""),
        ("defined", "Spicy", ""),
        ("defined", "Country", ""),
    }
    assert any("read as an ontology: 10 facts" in note and "1 obsolete" in note for note in kg.report.notes)


def test_shapes_and_the_top_and_bottom_of_all_classes_stay_out(tmp_path: Path) -> None:
    path = tmp_path / "shapes.ttl"
    text = """@prefix sh: <http://www.w3.org/ns/shacl#> .
    :Margherita a owl:Class ; rdfs:subClassOf :Pizza , owl:Thing ; sh:property :toppingShape , [ sh:path :hasTopping ] .
    :Pizza rdfs:subClassOf rdfs:Resource . :Mistake rdfs:subClassOf owl:Nothing .
    :toppingShape sh:path :hasTopping ; sh:declare [ sh:prefix "p" ] .
    """
    path.write_text(PREFIXES + text)
    assert facts(path) == {("Margherita", "subClassOf", "Pizza")}
    assert ("Pizza", "subClassOf", "Resource") in facts(path, ontology="off")


def test_names_of_the_files_own_namespace_need_no_prefix(tmp_path: Path) -> None:
    """The prefixes of RDF/XML were lost: they belong to its outermost element."""
    path = tmp_path / "pizza.owl"
    path.write_text(
        """<rdf:RDF xmlns="http://pizza.example/2005/" xmlns:drink="http://drinks.example/x/"
             xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
             xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xml:base="http://pizza.example/2005/">
           <rdf:Description rdf:about="Margherita"><servedWith rdf:resource="http://drinks.example/x/Wine"/>
           </rdf:Description>
           <rdf:Description rdf:about="Roma"><servedWith rdf:resource="http://drinks.example/x/Roma"/>
           </rdf:Description></rdf:RDF>"""
    )
    kg = KnowledgeGraph.from_file(path)
    assert sorted(kg.entities) == ["Margherita", "Roma", "drink:Roma", "drink:Wine"]
    assert list(kg.relations) == ["servedWith"]
    assert kg.entity_id("http://pizza.example/2005/Roma") == kg.entity_id(":Roma") == kg.entity_id("Roma")


def test_off_keeps_the_file_as_it_stands(pizza: Path) -> None:
    found = facts(pizza, ontology="off")
    assert any(head.startswith("_:") for head, _, _ in found)
    assert ("Newer", "subClassOf", "Old") in found and ("Margherita", "type", "Class") in found
    with pytest.raises(DataError, match="ontology must be one of auto, off"):
        facts(pizza, ontology="on")


def test_blank_nodes_that_are_things_stay(tmp_path: Path) -> None:
    path = tmp_path / "people.ttl"
    path.write_text(PREFIXES + "_:somebody :knows :ann . :ann :knows [ :knows :bob ] . :ann a :Person .")
    found = facts(path)
    assert len(found) == 4 and ("_:somebody", "knows", "ann") in found and ("ann", "type", "Person") in found


def test_a_store_holds_what_the_file_gives_in_memory(pizza: Path, tmp_path: Path) -> None:
    index_files([pizza], tmp_path / "pizza.gamma")
    assert facts(tmp_path / "pizza.gamma") == facts(pizza)
    read, stored = KnowledgeGraph.from_file(pizza), KnowledgeGraph.from_file(tmp_path / "pizza.gamma")
    assert list(stored.entities) == list(read.entities), "a name that only obsolete facts had is gone"
    assert read.report is not None and stored.report is not None
    assert {tuple(axiom) for axiom in stored.report.axioms} == set(read.report.axioms)


def test_what_a_store_held_before_stays_when_an_ontology_is_added(pizza: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.ttl"
    old.write_text(PREFIXES + ":Old :servedIn :Rome . :Rome :capitalOf :Italy .")
    index_files([old], tmp_path / "both.gamma")
    index_files([pizza], tmp_path / "both.gamma", append=True)
    both = facts(tmp_path / "both.gamma")
    assert {("Old", "servedIn", "Rome"), ("Margherita", "hasTopping", "Mozzarella")} <= both
    assert ("Newer", "subClassOf", "Old") not in both


def test_an_annotation_property_is_no_thing_either(tmp_path: Path) -> None:
    path = tmp_path / "subsets.ttl"
    path.write_text(
        PREFIXES
        + """:subset a owl:AnnotationProperty . :slim a owl:AnnotationProperty ; rdfs:subPropertyOf :subset .
        :A a owl:Class ; rdfs:subClassOf :B . :p a owl:ObjectProperty ; rdfs:subPropertyOf :q ."""
    )
    assert facts(path) == {("A", "subClassOf", "B"), ("p", "subPropertyOf", "q")}


@pytest.mark.parametrize("ending", ["ttl", "gamma"])
def test_blank_nodes_are_never_answers(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "people.ttl"
    path.write_text(PREFIXES + "_:x :knows :ann . :ann :knows :bob . :bob :knows _:x . :bob :likes :ann .")
    index_files([path], tmp_path / "people.gamma")
    kg = KnowledgeGraph.from_file(tmp_path / f"people.{ending}")
    blocked = rules_of(kg).blocked(kg.entity_id(":ann"), kg.relation_id(":likes"))
    identifiers = [name for batch in kg.entities.identifier_batches() for name in batch]
    assert [is_blocked for name, is_blocked in zip(identifiers, blocked, strict=True) if name.startswith("_:")] == [
        True
    ]
    assert not blocked[kg.entity_id(":bob")]


def test_a_list_that_bites_its_own_tail_ends(tmp_path: Path) -> None:
    path = tmp_path / "loop.ttl"
    loop = "_:l rdf:first :B ; rdf:rest _:l . :A owl:equivalentClass _:x . _:x owl:intersectionOf _:l ."
    path.write_text(PREFIXES + loop)
    assert facts(path) == {("A", "subClassOf", "B")}
    path.write_text(PREFIXES + ":A owl:equivalentClass _:x . _:x owl:intersectionOf ( _:x :B ) .")
    assert facts(path) == {("A", "subClassOf", "B")}
    bomb = "".join(f"_:x{i} owl:intersectionOf ( _:x{i + 1} _:x{i + 1} ) . " for i in range(60))
    path.write_text(f"{PREFIXES} :A rdfs:subClassOf _:x0 . {bomb} _:x60 owl:intersectionOf ( :B ) .")
    assert facts(path) == {("A", "subClassOf", "B")}


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("ttl", "@prefix : <http://e/#> . :a :knows :b . << :a :knows :c >> :from :wiki ."),
        ("nt", "<http://e/#a> <http://e/#knows> <http://e/#b> .\n_:r <{rdf}reifies> <<( <x:a> <x:p> <x:b> )>> ."),
        ("trig", "@prefix : <http://e/#> . :g { :a :knows :b {| :sure :no |} . }"),
        (
            "ttl",
            "@prefix : <http://e/#> . @prefix rdf: <{rdf}> . :a :knows :b . "
            "[] a rdf:Statement ; rdf:subject :a ; rdf:predicate :knows ; rdf:object :c .",
        ),
    ],
)
def test_what_is_said_of_a_fact_is_no_fact_itself(tmp_path: Path, ending: str, text: str) -> None:
    path = tmp_path / f"graph.{ending}"
    path.write_text(text.replace("{rdf}", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"))
    kg = KnowledgeGraph.from_file(path)
    assert ("a", "knows", "b") in facts(path) and ("a", "knows", "c") not in facts(path)
    assert not [name for name in kg.entities if "<" in name or ">" in name]
    assert not {"reifies", "subject", "predicate", "object"} & {relation for _, relation, _ in facts(path)}
    assert kg.report is not None and "triples about facts" in str(kg.report) and kg.report.left_out
