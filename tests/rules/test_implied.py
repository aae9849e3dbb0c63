"""Facts that stored facts give already: what is above a value, the end of a chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.rules import Rules, rules_of

PIZZAS = """
@prefix : <http://pizza.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:hasTopping a owl:ObjectProperty . :within a owl:TransitiveProperty . :beside a owl:ObjectProperty .
:Nuts rdfs:subClassOf :Topping . :Pines rdfs:subClassOf :Nuts . :Ham rdfs:subClassOf :Topping .
:Named rdfs:subClassOf :Pizza . :Roma rdfs:subClassOf :Named . :Veneziana rdfs:subClassOf :Named ;
  rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:someValuesFrom :Pines ] .
:Named rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:someValuesFrom :Tomato ] .
:mine a :Veneziana . :Venice :within :Veneto ; :beside :Mestre . :Veneto :within :Italy . :Mestre :beside :Padua .
"""


@pytest.fixture(scope="module")
def pizzas(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    path: Path = tmp_path_factory.mktemp("pizzas") / "pizza.ttl"
    path.write_text(PIZZAS)
    return KnowledgeGraph.from_file(path)


def asked(kg: KnowledgeGraph, head: str, relation: str, *, implied: bool = True) -> set[str]:
    """What is blocked of the query, the same from both ends."""
    rules, slot = rules_of(kg), kg.relation_id(relation)
    assert isinstance(rules, Rules)
    source = kg.entity_id(head)
    found = np.flatnonzero(rules.blocked(source, slot, implied=implied)).tolist()
    for other in range(kg.num_entities):
        from_there = rules.implied.by(other, slot + kg.num_relations)
        from_here = rules.implied.by(source, slot)
        assert (from_there is None) == (from_here is None)
        if from_there is not None and from_here is not None:
            assert from_there[source] == from_here[other]
    return {kg.entities[i].split(":")[-1] for i in found}


def why_not(kg: KnowledgeGraph, head: str, relation: str, tail: str) -> str:
    found = rules_of(kg).why_not(kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail))
    return (found or "").replace(":", "")


def test_what_is_above_a_value_or_stated_of_a_class_above_is_not_proposed(
    pizzas: KnowledgeGraph, small_gamma: Gamma
) -> None:
    assert {"Nuts", "Topping", "Tomato"} <= asked(pizzas, "Veneziana", "hasTopping")
    assert "Ham" not in asked(pizzas, "Veneziana", "hasTopping")
    assert {"Pines", "Nuts", "Tomato"} <= asked(pizzas, "mine", "hasTopping")  # each member has what its class has
    assert "follows already from Veneziana hasTopping Pines" in why_not(pizzas, "Veneziana", "hasTopping", "Nuts")
    assert "Veneziana comes under Named" in why_not(pizzas, "Veneziana", "hasTopping", "Tomato")
    every = {"head": "Veneziana", "relation": "hasTopping", "top_k": pizzas.num_entities}
    with_rules = {p.name.split(":")[-1] for p in small_gamma.predict(pizzas, **every)}
    without = {p.name.split(":")[-1] for p in small_gamma.predict(pizzas, **every, rules=False)}
    assert "Nuts" in without - with_rules and "Ham" in with_rules
    for fact in complete(small_gamma, pizzas, relations=["hasTopping"], top=100, min_cases=0).facts:
        assert not why_not(pizzas, fact.head, fact.relation, fact.tail)


def test_wider_classes_of_classes_and_of_things_follow(pizzas: KnowledgeGraph) -> None:
    assert "Pizza" in asked(pizzas, "Roma", "subClassOf") and "Topping" not in asked(pizzas, "Roma", "subClassOf")
    assert {"Named", "Pizza"} <= asked(pizzas, "mine", "type") and "Roma" not in asked(pizzas, "mine", "type")
    assert "Roma comes under" not in why_not(pizzas, "Roma", "subClassOf", "Pizza")
    assert "Named comes under Pizza" in why_not(pizzas, "Roma", "subClassOf", "Pizza")


def test_chains_follow_where_a_relation_is_transitive_and_questions_still_go_by_them(pizzas: KnowledgeGraph) -> None:
    assert "Italy" in asked(pizzas, "Venice", "within")
    assert "Italy" not in asked(pizzas, "Venice", "within", implied=False)  # it is true
    assert "Padua" not in asked(pizzas, "Venice", "beside")


def chains(shortcuts: int) -> KnowledgeGraph:
    facts = [(f"{i} {step}", "parent", f"{i} {step + 1}") for i in range(40) for step in range(3)]
    facts += [(f"{i} 0", "parent", f"{i} 2") for i in range(shortcuts)]
    return KnowledgeGraph.from_triples(facts)


def test_a_shortcut_is_left_out_where_no_fact_is_one() -> None:
    kg = chains(0)
    assert {"7 2", "7 3"} <= asked(kg, "7 0", "parent")
    assert {"7 2", "7 3"} <= asked(kg, "7 0", "parent", implied=False)  # nobody writes such a fact: it may be wrong
    assert "parent leads on from 7 1 to 7 3, and such facts are not written down (0 of" in why_not(
        kg, "7 0", "parent", "7 3"
    )
    assert not why_not(kg, "7 0", "parent", "8 3")
    # Two such facts are enough to allow for more.
    assert "7 2" not in asked(chains(2), "7 0", "parent")


def test_an_obo_file_says_what_holds_of_its_relations(tmp_path: Path) -> None:
    (tmp_path / "parts.obo").write_text(
        "format-version: 1.2\nontology: t\n\n[Term]\nid: T:1\nname: envelope\nrelationship: part_of T:2\n\n"
        "[Term]\nid: T:2\nname: nucleus\nis_a: T:4\nrelationship: part_of T:3\ndisjoint_from: T:5\n\n"
        "[Term]\nid: T:3\nname: cell\n\n[Term]\nid: T:4\nname: organelle\n\n[Term]\nid: T:5\nname: toe\nis_a: T:3\n\n"
        "[Typedef]\nid: part_of\nname: part of\nis_transitive: true\ndomain: T:4\n"
    )
    kg = KnowledgeGraph.from_file(tmp_path / "parts.obo")
    assert kg.report is not None
    assert [axiom[0] for axiom in kg.report.axioms] == ["some", "disjoint", "transitive", "domain"]
    assert {"organelle", "cell"} <= asked(kg, "envelope", "part of")
