"""Facts of one list: each is fine on its own, and the list holds no two that exclude each other."""

from __future__ import annotations

from gamma_kg import KnowledgeGraph
from gamma_kg.data.options import ReadReport
from gamma_kg.rules.rules import Rules
from gamma_kg.rules.together import Together

SUBCLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"


def together(kg: KnowledgeGraph):
    """Takes facts by name, says which it admits."""
    rules = Together(Rules(kg))
    return lambda head, relation, tail: rules.admits(kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail))


def classes() -> KnowledgeGraph:
    under = [("cat", "animal"), ("dog", "animal"), ("fern", "plant"), ("tom", "cat"), ("beast", "thing")]
    kg = KnowledgeGraph.from_triples([(below, SUBCLASS, above) for below, above in under])
    kg.report = ReadReport(axioms=(("disjoint", "animal", "plant"),))
    return kg


def test_of_two_classes_only_one_comes_under_the_other() -> None:
    admits = together(classes())
    assert admits("cat", SUBCLASS, "dog")
    assert not admits("dog", SUBCLASS, "cat")


def test_no_cycle_closes_over_stored_and_admitted_facts() -> None:
    admits = together(classes())
    assert admits("animal", SUBCLASS, "beast")
    assert admits("thing", SUBCLASS, "plant")
    assert not admits("plant", SUBCLASS, "tom")  # tom, cat, animal, beast, thing, plant


def test_nothing_comes_under_two_classes_that_exclude_each_other() -> None:
    admits = together(classes())
    assert admits("beast", SUBCLASS, "cat")
    assert not admits("beast", SUBCLASS, "fern")
    assert admits("thing", SUBCLASS, "plant")


def test_what_follows_from_a_fact_before_it_is_left_out() -> None:
    admits = together(classes())
    assert admits("beast", SUBCLASS, "tom")
    assert not admits("beast", SUBCLASS, "animal")


def test_what_is_stated_of_a_class_is_not_listed_again_for_those_below() -> None:
    kg = classes()
    kg = kg.add([("animal", "eats", "fern")])
    kg.report = ReadReport(axioms=(("some", "eats", ""),))
    admits = together(kg)
    assert admits("cat", "eats", "dog")
    assert not admits("tom", "eats", "dog") and not admits("cat", "eats", "animal")
    assert admits("animal", "eats", "dog")  # says more than what is known of cats


def test_a_thing_with_one_value_gets_one() -> None:
    facts = [(f"person {i}", "born in", f"town {i % 50}") for i in range(1_000)]
    kg = KnowledgeGraph.from_triples([*facts, ("Ann", "knows", "Bob"), ("Bob", "knows", "Cleo")])
    admits = together(kg)
    assert admits("Ann", "born in", "town 1") and admits("Bob", "born in", "town 1")
    assert not admits("Ann", "born in", "town 2")
    assert admits("Ann", "knows", "Cleo") and admits("Cleo", "knows", "Ann")
