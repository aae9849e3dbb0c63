"""What is no contradiction and still not proposed to those who did not ask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.complete.choice import Choice
from gamma_kg.complete.proposals import promising_queries
from gamma_kg.graph.inverse import inverse_of
from gamma_kg.rules import Rules
from gamma_kg.rules.closure import Closures
from gamma_kg.rules.sisters import Sisters

Facts = list[tuple[str, str, str]]


def hierarchy() -> Facts:
    """Things 0 … 59 under kinds 0 … 5, these under a group each, all under a top; parts lie in parts. Some have two."""
    facts = [(f"thing {i}", "subclass of", f"kind {i % 6}") for i in range(60)]
    facts += [(f"kind {i}", "subclass of", f"group {i % 2}") for i in range(6)]
    facts += [(f"group {i}", "subclass of", "top") for i in range(2)]
    facts += [(f"thing {i}", "subclass of", f"kind {(i + 2) % 6}") for i in range(8)]
    facts += [(f"thing {i}", "lies in", f"thing {i + 30}") for i in range(30)]
    return facts + [(f"thing {i}", "lies in", f"thing {i + 31}") for i in range(6)]


def blocked(kg: KnowledgeGraph, head: str, relation: str, tail: str) -> bool:
    """Whether a fact is not proposed, the same from both ends."""
    unasked, r = Rules(kg).unasked, kg.relation_id(relation)
    h, t = kg.entity_id(head), kg.entity_id(tail)
    from_head = bool(unasked.blocked(h, r)[t])
    assert from_head == bool(unasked.blocked(t, inverse_of(r, kg.num_relations))[h])
    return from_head


def test_what_would_make_a_stored_fact_superfluous_is_not_proposed(small_gamma: Gamma) -> None:
    kg = KnowledgeGraph.from_triples(hierarchy())
    assert blocked(kg, "group 0", "subclass of", "kind 1"), "group 0 under top would follow"
    assert blocked(kg, "kind 0", "subclass of", "kind 2"), "both are under group 0"
    assert not blocked(kg, "kind 0", "subclass of", "group 1")
    assert not blocked(kg, "thing 0", "subclass of", "kind 3")
    # predict was asked, and may say so.
    assert not Rules(kg).blocked(kg.entity_id("kind 0"), kg.relation_id("subclass of"))[kg.entity_id("kind 2")]
    found = {
        (fact.head, fact.tail)
        for fact in complete(small_gamma, kg, relations=["subclass of"], top=1000, min_cases=0).facts
    }
    assert found and not {("kind 0", "kind 2"), ("kind 2", "kind 4"), ("group 0", "kind 1")} & found


def test_a_graph_that_writes_shortcuts_down_gets_them_proposed() -> None:
    shortcuts = [(f"thing {i}", "subclass of", f"group {i % 2}") for i in range(30)]
    kg = KnowledgeGraph.from_triples([*hierarchy(), *shortcuts])
    assert not blocked(kg, "kind 0", "subclass of", "kind 2")


def test_no_other_link_is_proposed_between_a_thing_and_its_kind() -> None:
    kg = KnowledgeGraph.from_triples(hierarchy())
    assert blocked(kg, "thing 0", "lies in", "kind 0") and blocked(kg, "group 0", "lies in", "thing 30")
    assert not blocked(kg, "thing 0", "lies in", "thing 32")
    often = [(f"thing {i}", "lies in", f"kind {i % 6}") for i in range(10)]
    assert not blocked(KnowledgeGraph.from_triples([*hierarchy(), *often]), "thing 20", "lies in", "kind 2")


def test_what_comes_from_elsewhere_than_all_that_stand_there_is_not_proposed() -> None:
    facts = [*hierarchy(), *[(f"thing {6 * i}", "sold by", f"shop {i % 3}") for i in range(10)]]
    facts += [(f"thing {6 * i + 2}", "sold by", f"shop {i % 3}") for i in range(10)]
    facts += [(f"thing {6 * i + 4}", "sold by", f"shop {i % 3}") for i in range(10)]
    kg = KnowledgeGraph.from_triples(facts)  # only things of group 0 are sold
    unasked = Rules(kg).unasked
    sold = kg.relation_id("sold by")
    assert unasked.domains.of(sold) == kg.entity_id("group 0")
    outside = unasked.out_of_place(sold)
    assert outside[kg.entity_id("thing 1")] and outside[kg.entity_id("kind 3")]
    assert not outside[kg.entity_id("kind 2")] and not outside[kg.entity_id("thing 0")]
    asked = [kg.entity_id("thing 1"), sold]
    assert asked not in promising_queries(kg, Choice.of(kg)).tolist()
    assert asked in promising_queries(kg, Choice.of(kg), rules=False).tolist()
    few = KnowledgeGraph.from_triples(facts[: len(hierarchy()) + 10])
    assert Rules(few).unasked.domains.of(few.relation_id("sold by")) is None, "ten things prove nothing"


def two_axes() -> Facts:
    """Ever narrower regulations, each with its activation and its inhibition: every one of these has two parents."""
    facts = [("activation 0", "subclass of", "regulation 0"), ("inhibition 0", "subclass of", "regulation 0")]
    for i in range(1, 16):
        facts += [
            (f"{what} {i}", "subclass of", f"{what} {i - 1}") for what in ("regulation", "activation", "inhibition")
        ]
        facts += [(f"{sign} {i}", "subclass of", f"regulation {i}") for sign in ("activation", "inhibition")]
    return facts


def test_the_first_class_under_two_sisters_is_not_proposed(small_gamma: Gamma) -> None:
    kg = KnowledgeGraph.from_triples(two_axes())
    unasked, under = Rules(kg).unasked, kg.relation_id("subclass of")

    def is_first(low: str, high: str) -> bool:
        return unasked.is_unlike_the_rest(kg.entity_id(low), under, kg.entity_id(high))

    assert is_first("activation 5", "inhibition 3") and is_first("inhibition 7", "activation 7")
    assert not is_first("activation 5", "regulation 9"), "other activations are below it"
    proposed = complete(small_gamma, kg, top=1000, min_cases=0).facts
    wrong = [fact for fact in proposed if {fact.head[:5], fact.tail[:5]} == {"activ", "inhib"}]
    assert proposed and not wrong


def test_sisters_that_often_get_a_first_child_in_common_tell_nothing() -> None:
    facts = [(f"sister {i}", "subclass of", "top") for i in range(12)]
    facts += [(f"child {i} {n}", "subclass of", f"sister {i}") for i in range(12) for n in range(4)]
    facts += [(f"child {i} 0", "subclass of", f"sister {i + 1}") for i in range(0, 10, 2)]
    kg = KnowledgeGraph.from_triples(facts)
    rules = Rules(kg)
    sisters = Sisters(rules.closures, rules.axioms.wider)
    assert sisters.seen == (10, 10) and not sisters.is_rare


def beams(num: int = 20, more: Facts | None = None) -> Facts:
    """Beams of many sorts, each sort with an active and a passive kind; every kind has the tags of its sort and one of
    its own."""
    facts = []
    for i in range(num):
        tags = ["beam", f"sort {i}", f"shape {i}"]
        facts += [(f"beam {i}", "tag", tag) for tag in tags]
        for kind in ("active", "passive"):
            facts += [(f"{kind} beam {i}", "tag", tag) for tag in (*tags, kind)]
            facts += [(f"{kind} beam {i}", "subclass of", f"beam {i}")]
    return facts + (more or [])


def says_no(facts: Facts, head: str, relation: str, tail: str) -> bool:
    kg = KnowledgeGraph.from_triples(facts)
    fact = kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail)
    return Rules(kg).unasked.is_unlike_the_rest(*fact)


def test_a_class_is_not_proposed_what_most_below_it_lack() -> None:
    assert says_no(beams(), "beam 3", "tag", "active"), "one of two kinds is active"
    both = [(f"{kind} beam 3", "tag", "cold") for kind in ("active", "passive")]
    assert not says_no(beams(more=both), "beam 3", "tag", "cold"), "both kinds are"
    assert not says_no(beams(more=[("lone beam", "tag", "beam")]), "lone beam", "tag", "active"), "none is below it"
    # Where those under a class do not repeat its tags, they say nothing of them.
    unlike = [(f"beam {i}", "tag", f"own {n} of {i}") for i in range(20) for n in range(9)]
    assert not says_no(beams(more=unlike), "beam 3", "tag", "active")


def test_a_class_is_not_proposed_what_some_below_it_have_where_to_have_nothing_is_to_lack_it() -> None:
    drafts = [(f"draft {i}", "subclass of", "whatever") for i in range(3)] + [("draft 0", "tag", "in draft")]
    facts = beams(more=drafts)
    assert says_no(facts, "whatever", "tag", "in draft"), "one of three is, and two have no tag"
    nearly_all = [(f"draft {i}", "tag", "in draft") for i in range(2)]
    assert not says_no(beams(more=drafts + nearly_all), "whatever", "tag", "in draft")
    untagged = beams(more=drafts[:3])
    assert not says_no(untagged, "whatever", "tag", "sort 4"), "none below has it: it may not have been written down"
    # Where most below a class have no tags of their own, those have said nothing.
    bare = [(f"bare beam {i} {n}", "subclass of", f"beam {i}") for i in range(20) for n in range(3)]
    assert not says_no(beams(more=drafts + bare), "whatever", "tag", "in draft")


def test_what_tells_a_sister_apart_is_not_proposed() -> None:
    assert says_no(beams(), "active beam 3", "tag", "passive")
    assert not says_no(beams(), "active beam 3", "tag", "sort 4"), "no sister has it"
    assert not says_no(beams(more=[("passive beam 3", "tag", "wet")]), "active beam 3", "tag", "passive")
    # Where sisters often have all that others have, nothing is told apart by a tag.
    nested = [(f"active beam {i}", "tag", "passive") for i in range(4)]
    assert not says_no(beams(more=nested), "active beam 5", "tag", "passive")


ONTOLOGY = """
@prefix : <http://pizza.example/#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://pizza.example/> a owl:Ontology ; :licence :Free .
:Pizza a owl:Class . :Country a owl:Class . :Wide a owl:Class ; rdfs:subClassOf :Pizza .
:Broad a owl:Class ; owl:equivalentClass :Wide . :Roma a owl:Class ; rdfs:subClassOf :Pizza .
:Italy a :Country . :France a :Country .
:has a owl:ObjectProperty . :top a owl:ObjectProperty ; rdfs:subPropertyOf :has .
:base a owl:ObjectProperty ; rdfs:subPropertyOf :has .
"""


@pytest.fixture
def pizzas(tmp_path: Path) -> KnowledgeGraph:
    (tmp_path / "pizza.ttl").write_text(ONTOLOGY)
    return KnowledgeGraph.from_file(tmp_path / "pizza.ttl")


def test_classes_individuals_and_properties_keep_to_their_places(pizzas: KnowledgeGraph) -> None:
    rules = Rules(pizzas)

    def why_not(head: str, relation: str, tail: str) -> str:
        h, r, t = pizzas.entity_id(head), pizzas.relation_id(relation), pizzas.entity_id(tail)
        found = rules.why_not(h, r, t)
        blocked = rules.blocked(h, r)[t] or rules.blocked(t, inverse_of(r, pizzas.num_relations))[h]
        assert blocked == (found is not None)
        return found or ""

    for head, relation, tail, told in (
        ("Italy", "rdfs:subClassOf", "Pizza", "Italy is an individual, and rdfs:subClassOf is about classes"),
        ("Italy", "rdf:type", "France", "France is an individual, and rdf:type is about classes"),
        ("Italy", "rdfs:subPropertyOf", "has", "Italy is an individual, and rdfs:subPropertyOf is about properties"),
    ):
        assert told in why_not(head, relation, tail)
    assert not why_not("Italy", "rdf:type", "Pizza")  # two facts do not show that classes have no type


def test_relations_between_properties_are_asked_only_by_name(pizzas: KnowledgeGraph) -> None:
    under = pizzas.relation_id("rdfs:subPropertyOf")

    def asked(choice: Choice) -> set[int]:
        return {r % pizzas.num_relations for _, r in promising_queries(pizzas, choice).tolist()}

    assert under not in asked(Choice.of(pizzas)) and asked(Choice.of(pizzas))
    assert under in asked(Choice.of(pizzas, relations=["rdfs:subPropertyOf"]))


def test_equivalent_classes_are_under_each_other_and_under_what_the_other_is(pizzas: KnowledgeGraph) -> None:
    rules, under = Rules(pizzas), pizzas.relation_id("rdfs:subClassOf")
    broad, wide, pizza = (pizzas.entity_id(name) for name in ("Broad", "Wide", "Pizza"))
    blocked = rules.blocked(broad, under)
    assert blocked[wide] and blocked[pizza] and not blocked[pizzas.entity_id("Roma")]
    assert "declared equivalent" in (rules.why_not(broad, under, wide) or "")
    assert "follows already from Wide rdfs:subClassOf Pizza" in (rules.why_not(broad, under, pizza) or "").replace(
        "pizza:", ""
    )


def test_the_header_of_an_ontology_is_no_thing_and_a_catalogue_of_ontologies_is(
    pizzas: KnowledgeGraph, tmp_path: Path
) -> None:
    assert "licence" not in {name.split(":")[-1] for name in pizzas.relations}
    catalogue = "@prefix : <http://c.example/#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    catalogue += "".join(f":o{i} a owl:Ontology ; :about :topic{i % 2} .\n" for i in range(6))
    (tmp_path / "catalogue.ttl").write_text(catalogue)
    assert KnowledgeGraph.from_file(tmp_path / "catalogue.ttl").num_triples == 6


DEFINED = """
@prefix : <http://x/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Cheesey a owl:Class ; owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( :Pizza
  [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:someValuesFrom :Cheese ] ) ] .
:Named a owl:Class ; rdfs:subClassOf :Pizza .
:Alike a owl:Class ; owl:equivalentClass :Named .
"""


def test_nothing_is_proposed_under_a_class_that_is_defined(tmp_path: Path) -> None:
    facts = "".join(f":P{i} rdfs:subClassOf :Named, :Cheesey . " for i in range(9)) + ":New rdfs:subClassOf :Named ."
    path = tmp_path / "pizza.ttl"
    path.write_text(DEFINED + facts, encoding="utf-8")
    kg = KnowledgeGraph.from_file(path)
    wider, new = kg.relation_id("rdfs:subClassOf"), kg.entity_id("http://x/New")
    unwanted = Rules(kg).unasked.blocked(new, wider)
    defined, named = (kg.entity_id(f"http://x/{name}") for name in ("Cheesey", "Named"))
    assert unwanted[defined], "whether it has cheese is for a reasoner"
    assert not Rules(kg).blocked(new, wider)[defined], "predict was asked"
    asked = promising_queries(kg, Choice.of(kg))
    assert (named, inverse_of(wider, kg.num_relations)) in set(map(tuple, asked.tolist()))
    assert (defined, inverse_of(wider, kg.num_relations)) not in set(map(tuple, asked.tolist()))
    assert not Rules(kg).axioms.is_defined[kg.entity_id("http://x/Alike")], "another name is no definition"


def test_obo_definitions_are_definitions(tmp_path: Path) -> None:
    path = tmp_path / "x.obo"
    terms = "[Term]\nid: X:1\n\n[Term]\nid: X:2\nis_a: X:1\n\n"
    defined = "[Term]\nid: X:3\nintersection_of: X:1\nintersection_of: part_of X:2\n"
    path.write_text("format-version: 1.2\n\n" + terms + defined, encoding="utf-8")
    kg = KnowledgeGraph.from_file(path)
    is_defined = Rules(kg).axioms.is_defined
    assert is_defined is not None and [kg.entity_id(f"X:{i}") for i in (3,)] == is_defined.nonzero()[0].tolist()


def test_members_without_a_fact_are_those_of_a_graph_without_it() -> None:
    rng = np.random.default_rng(0)
    for size in (6, 12, 25):
        low, high = rng.integers(0, size, (2, 3 * size))
        low, high = np.maximum(low, high)[low != high], np.minimum(low, high)[low != high]
        triples = np.unique(np.stack([low, np.zeros_like(low), high], axis=1), axis=0)
        sisters = Sisters(Closures(triples, size, 1), [0])
        for row, (head, _, tail) in enumerate(triples.tolist()):
            without = Closures(np.delete(triples, row, axis=0), size, 1)
            for one in range(size):
                assert np.array_equal(sisters._members(one, (head, tail)), without.reach(one, 1)), (head, tail, one)


def test_what_is_reached_from_each_is_what_is_reached_from_one() -> None:
    rng = np.random.default_rng(1)
    triples = np.stack([rng.integers(0, 30, 60), rng.integers(0, 2, 60), rng.integers(0, 30, 60)], axis=1)
    walk, nodes = Closures(triples, 30, 2), np.array([3, 7, 7, 29])
    place, reached = walk.reach_of_each(nodes, 0, 3)
    for at, node in enumerate(nodes.tolist()):
        assert np.array_equal(np.sort(reached[place == at]), np.flatnonzero(walk.reach(node, 0, 3)))
    assert [len(part) for part in Closures(triples[:0], 30, 2).reach_of_each(nodes[:0], 0)] == [0, 0]


def places() -> Facts:
    """Forty countries in eight regions, these on two continents; of some countries the region is not known."""
    facts = [(f"country {i}", "lies in", f"region {i % 8}") for i in range(40) if i % 10]
    facts += [(f"country {i}", "lies in", f"continent {i % 2}") for i in range(40)]
    return facts + [(f"region {i}", "lies in", f"continent {i % 2}") for i in range(8)]


def test_no_second_region_is_proposed_where_each_country_lies_in_one() -> None:
    kg = KnowledgeGraph.from_triples(places())
    unasked, r = Rules(kg).unasked, kg.relation_id("lies in")

    def is_unlike(head: str, tail: str) -> bool:
        return unasked.is_unlike_the_rest(kg.entity_id(head), r, kg.entity_id(tail))

    assert is_unlike("country 1", "region 3")
    assert not is_unlike("country 10", "region 2"), "its region is what is missing"
    assert not is_unlike("region 1", "continent 1")
    abroad = [(f"country {i}", "lies in", f"region {(i + 2) % 8}") for i in range(1, 40, 4)]
    kg = KnowledgeGraph.from_triples([*places(), *abroad])
    assert not Rules(kg).unasked.narrowest.would_be_second(
        kg.entity_id("country 3"), kg.relation_id("lies in"), kg.entity_id("region 5")
    ), "a quarter lies in two"
    round_about = [(f"a{i}", "near", f"a{(i + 1) % 40}") for i in range(40)]
    kg = KnowledgeGraph.from_triples(round_about)
    assert not Rules(kg).unasked.narrowest.would_be_second(0, 0, 5)


def test_no_query_is_asked_that_nothing_can_be_a_new_answer_to() -> None:
    """Each airport has its one city: no city lacks an airport, unless some airport lacks a city."""
    facts = [(f"airport {i}", "city", f"city {i % 40}") for i in range(400)]
    facts += [(f"airport {i}", "run by", f"firm {i % 30}") for i in range(400)]

    def asked(facts: Facts) -> set[tuple[str, bool]]:
        kg = KnowledgeGraph.from_triples(facts)
        queries = promising_queries(kg, Choice.of(kg, relations=["city"])).tolist()
        return {(kg.entities[source][:4], r >= kg.num_relations) for source, r in queries}

    assert asked(facts) == set()
    assert asked([*facts, ("airport 400", "run by", "firm 1")]) == {("airp", False), ("city", True)}
