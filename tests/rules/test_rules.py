"""Rules: what a graph's own facts show of its relations, and which candidates contradict it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.complete.choice import Choice
from gamma_kg.complete.proposals import promising_queries
from gamma_kg.data.options import ReadReport
from gamma_kg.rules import Rules, rules_of
from gamma_kg.rules.bounds import at_least, at_most
from gamma_kg.rules.patterns import find_patterns


def tree(depth: int = 6) -> list[tuple[str, str, str]]:
    """A binary tree of `is a`: each node's child is called by its path."""
    names = [""]
    facts = []
    for _ in range(depth):
        names = [name + side for name in names for side in "lr"]
        facts += [(f"n{name}", "is a", f"n{name[:-1]}") for name in names]
    return facts


@pytest.fixture(scope="module")
def world() -> KnowledgeGraph:
    """A hierarchy, a symmetric relation, one that gives each thing one number, and a few facts of a rare one."""
    facts = tree(7)
    facts += [(f"p{i}", "knows", f"p{(i + 1) % 60}") for i in range(60)]
    facts += [(f"p{(i + 1) % 60}", "knows", f"p{i}") for i in range(60)]
    facts += [(f"p{i}", "has number", f"number {i % 7}") for i in range(0, 300)]
    facts += [("a", "rare", "b"), ("b", "rare", "c"), ("p0", "is a", "n"), ("p1", "is a", "n")]
    facts += [("other", "is a", "n"), ("another", "is a", "other")]
    return KnowledgeGraph.from_triples(facts)


def names(rules: Rules, blocked: np.ndarray) -> set[str]:
    return {rules.entities[i] for i in np.flatnonzero(blocked).tolist()}


def test_bounds_enclose_the_share_and_close_in_on_it() -> None:
    assert at_least(5, 10) < 0.5 < at_most(5, 10)
    assert at_most(0, 10) > at_most(0, 100) > at_most(0, 1000) > 0
    # 0 of n: z² / (n + z²)
    assert at_most(0, 100) == pytest.approx(1.645**2 / (100 + 1.645**2))
    assert at_most(0, 0) == 1 and at_least(0, 0) == 0


def test_counts_per_relation_are_those_of_a_hand_made_graph() -> None:
    triples = np.array([[0, 0, 1], [1, 0, 0], [1, 0, 2], [2, 0, 3], [3, 0, 3], [0, 1, 2], [0, 1, 3], [0, 0, 1]])
    found = find_patterns(triples, 4, 3)
    assert found.facts.tolist() == [5, 2, 0]
    assert found.proper.tolist() == [4, 2, 0] and found.loops.tolist() == [1, 0, 0]
    assert found.reversed.tolist() == [2, 0, 0]
    assert found.cyclic.tolist() == [2, 0, 0]
    assert found.leading.tolist() == [4, 0, 0]
    assert found.heads.tolist() == [4, 1, 0] and found.heads_several.tolist() == [1, 1, 0]
    assert found.tails.tolist() == [4, 2, 0] and found.tails_several.tolist() == [1, 0, 0]


def test_few_facts_prove_nothing(world: KnowledgeGraph) -> None:
    rules = rules_of(world)
    rare, is_a, knows = (world.relation_id(name) for name in ("rare", "is a", "knows"))
    assert not rules.patterns.describe(rare)
    assert not names(rules, rules.blocked(world.entity_id("c"), rare))
    assert rules.patterns.is_never_symmetric[is_a] and rules.patterns.is_acyclic[is_a]
    assert rules.patterns.is_symmetric[knows] and not rules.patterns.is_never_symmetric[knows]
    assert any("never symmetric: 0 of 258" in text for text in rules.patterns.describe(is_a))


def test_a_fact_is_not_reversed_and_no_cycle_closed(world: KnowledgeGraph) -> None:
    rules, is_a = rules_of(world), world.relation_id("is a")
    source = world.entity_id("nl")
    blocked = names(rules, rules.blocked(source, is_a))
    assert {"nll", "nlr", "nlll", "nl"} <= blocked  # what is below it, and itself
    assert "other" not in blocked and "n" not in blocked  # another class under the same one, and a known fact
    assert "nr" in blocked  # the other branch, with which this one shares nothing
    assert "0 of 127 things are under both" in (rules.why_not(source, is_a, world.entity_id("nrl")) or "")
    assert "the reverse is a fact" in (rules.why_not(source, is_a, world.entity_id("nll")) or "")
    assert "close a cycle" in (rules.why_not(source, is_a, world.entity_id("nlll")) or "")
    assert "itself" in (rules.why_not(source, is_a, source) or "")
    # From the other end: what is above can't be below.
    assert {"n"} <= names(rules, rules.blocked(source, is_a + world.num_relations))


def test_the_top_of_a_hierarchy_stays_there(world: KnowledgeGraph, small_gamma: Gamma) -> None:
    rules, is_a, top = rules_of(world), world.relation_id("is a"), world.entity_id("n")
    assert rules.top(is_a) == top and rules.top(world.relation_id("knows")) is None
    assert rules.blocked(world.entity_id("a"), is_a + world.num_relations)[top]
    assert "at the top" in (rules.why_not(top, is_a, world.entity_id("a")) or "")
    facts = complete(small_gamma, world, relations=["is a"], top=1000, min_cases=0).facts
    assert "n" not in {fact.head for fact in facts}


def test_two_classes_with_nothing_in_common_are_apart_only_if_chance_would_give_them_much() -> None:
    facts = [(f"cat {i}", "is a", "cat") for i in range(300)] + [(f"house {i}", "is a", "house") for i in range(300)]
    facts += [(f"pet {i}", "is a", "cat" if i % 2 else "pet") for i in range(300)]
    facts += [(f"pet {i}", "is a", "pet") for i in range(300)] + [(f"gem {i}", "is a", "gem") for i in range(5)]
    kg = KnowledgeGraph.from_triples(facts)
    apart = rules_of(kg).axioms.apart
    ids = {name: kg.entity_id(name) for name in ("cat", "house", "pet", "gem")}
    assert apart[ids["cat"], ids["house"]] == (0, 301)
    assert (ids["cat"], ids["pet"]) not in apart and (ids["cat"], ids["gem"]) not in apart


def test_two_relations_that_never_link_the_same_two_things_rule_each_other_out() -> None:
    facts = [(f"wall {i}", "part of", f"house {i % 100}") for i in range(900)]
    facts += [(f"wall {i}", "is a", f"wall {i // 10}") for i in range(10, 900)]
    facts += [(f"house {i}", "near", f"house {i + 1}") for i in range(20)]
    kg = KnowledgeGraph.from_triples(facts)
    rules, back = rules_of(kg), kg.num_relations
    wall, house, is_a = kg.entity_id("wall 7"), kg.entity_id("house 7"), kg.relation_id("is a")
    assert rules.blocked(wall, is_a)[house] and rules.blocked(house, is_a + back)[wall]
    assert rules.pairs.excluding(is_a)[kg.relation_id("part of")]
    assert "0 of 900 such pairs" in (rules._against_pair(wall, is_a, house) or "")
    assert not rules.pairs.excluding(kg.relation_id("near")).any()  # too few facts to tell


@pytest.mark.parametrize(("turned", "is_out"), [(0, True), (1, False), (4, False), (5, True)])
def test_a_few_pairs_the_other_way_round_may_all_be_so_by_chance(turned: int, is_out: bool) -> None:
    facts = [(f"wall {i}", "part of", f"house {i % 100}") for i in range(900)]
    facts += [(f"wall {i}", "is a", f"wall {i // 10}") for i in range(10, 900)]
    facts += [(f"house {i}", "is a", f"wall {i}") for i in range(turned)]
    kg = KnowledgeGraph.from_triples(facts)
    is_a, part_of = kg.relation_id("is a"), kg.relation_id("part of")
    assert rules_of(kg).pairs.excluding(is_a)[part_of], "no pair has a second relation this way round"
    # Where pairs do, it takes more.
    kg = KnowledgeGraph.from_triples([*facts, *((f"wall {i}", "like", f"wall {i // 10}") for i in range(10, 40))])
    is_a, part_of = kg.relation_id("is a"), kg.relation_id("part of")
    assert rules_of(kg).pairs.excluding(is_a)[part_of] == is_out
    assert rules_of(kg).pairs.excluding(is_a)[part_of + kg.num_relations] == (not turned)


def test_one_value_is_enough_where_every_thing_has_one(world: KnowledgeGraph) -> None:
    rules, number = rules_of(world), world.relation_id("has number")
    assert rules.has_single_answers(number) and not rules.has_single_answers(number + world.num_relations)
    thing, other = world.entity_id("p3"), world.entity_id("number 0")
    assert "p3 has number 3 already" in (rules.why_not(thing, number, other) or "")
    # Asked from the number's side, all that have one are out.
    blocked = names(rules, rules.blocked(other, number + world.num_relations))
    assert "p3" in blocked and "nl" not in blocked
    assert "p0" not in blocked  # known


def test_a_role_that_hundreds_never_combine_with_another_rules_it_out() -> None:
    facts = [(f"city {i}", "lies in", f"country {i % 9}") for i in range(400)]
    facts += [(f"person {i}", "born in", f"city {i % 400}") for i in range(500)]
    kg = KnowledgeGraph.from_triples([*facts, ("city 1", "twin of", "city 2")])
    rules, born = rules_of(kg), kg.relation_id("born in")
    blocked = names(rules, rules.blocked(kg.entity_id("city 7"), born + kg.num_relations))
    assert "city 9" in blocked and "country 1" not in blocked  # too few countries to tell
    assert "a head of lies in" in (rules.why_not(kg.entity_id("city 9"), born, kg.entity_id("city 7")) or "")
    # A rare relation is seldom seen of anything; that is no reason.
    twin = kg.relation_id("twin of")
    assert "person 4" not in names(rules, rules.blocked(kg.entity_id("city 1"), twin))


def test_blocked_and_why_not_agree(world: KnowledgeGraph) -> None:
    rules = rules_of(world)
    for name in ("nl", "p3", "number 1", "a"):
        source = world.entity_id(name)
        for relation in range(2 * world.num_relations):
            if rules.against_another(source, relation) is not None:
                continue  # speaks against all of them; they are marked, not left out
            blocked = rules.blocked(source, relation)
            given = np.array([rules.why_not(source, relation, i) is not None for i in range(world.num_entities)])
            # A source in the wrong role speaks against every answer, which leaves nothing to choose from.
            if not given.all():
                assert (blocked <= given).all(), (name, relation)


def test_predict_and_complete_leave_contradictions_out_unless_told_not_to(
    world: KnowledgeGraph, small_gamma: Gamma
) -> None:
    everything = {"top_k": world.num_entities, "head": "nl", "relation": "is a"}
    with_rules = {p.name for p in small_gamma.predict(world, **everything)}
    without = {p.name for p in small_gamma.predict(world, **everything, rules=False)}
    assert "nll" in without - with_rules and "other" in with_rules
    for fact in complete(small_gamma, world, relations=["is a"], top=1000, min_cases=0).facts:
        assert rules_of(world).why_not(*(world.entity_id(fact.head), 0, world.entity_id(fact.tail))) is None
    marked = small_gamma.predict(world, head="p3", relation="has number", top_k=3)
    assert all("already" in (p.why_not or "") for p in marked)
    shown = small_gamma.predict(world, head="p3", relation="has number", include_known=True, top_k=1000)
    assert [p.why_not for p in shown if p.known] == [None]


def test_relations_that_the_pair_contradicts_are_left_out(world: KnowledgeGraph, small_gamma: Gamma) -> None:
    answers = {p.name for p in small_gamma.predict(world, head="nl", tail="nll")}
    assert "is a" not in answers
    assert "is a" in {p.name for p in small_gamma.predict(world, head="nl", tail="nll", rules=False)}


@pytest.mark.parametrize(("relation", "is_blocked"), [("part of", True), ("likes", False)])
def test_parts_and_wholes_have_no_cycles_unless_a_fact_closes_one(relation: str, is_blocked: bool) -> None:
    facts = [("envelope", relation, "nucleus"), ("nucleus", relation, "cell")]
    kg = KnowledgeGraph.from_triples(facts)
    assert ("envelope" in names(rules_of(kg), rules_of(kg).blocked(kg.entity_id("nucleus"), 0))) is is_blocked
    assert ("envelope" in names(rules_of(kg), rules_of(kg).blocked(kg.entity_id("cell"), 0))) is is_blocked
    closed = KnowledgeGraph.from_triples([*facts, ("cell", relation, "nucleus")])
    assert not rules_of(closed).blocked(closed.entity_id("nucleus"), 0).any()


def test_rules_live_as_long_as_their_graph() -> None:
    kg = KnowledgeGraph.from_triples(tree(3))
    assert rules_of(kg) is rules_of(kg)
    empty = KnowledgeGraph(np.empty((0, 3), dtype=np.int64), ["a"], ["r"])
    assert not rules_of(empty).blocked(0, 0).any()


ONTOLOGY = """
@prefix : <http://pizza.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:hasTopping a owl:ObjectProperty, owl:AsymmetricProperty ; rdfs:domain :Pizza ; rdfs:range :Topping .
:hasBase a owl:FunctionalProperty .
:Pizza owl:disjointWith :Topping . :Pizza rdfs:subClassOf :Food . :Topping rdfs:subClassOf :Food .
:Ham rdfs:subClassOf :Topping . :Basil rdfs:subClassOf :Topping . :Cheese rdfs:subClassOf :Topping .
:Margherita rdfs:subClassOf :Pizza ; :hasTopping :Basil , :Cheese ; :hasBase :Thin . :Roma rdfs:subClassOf :Pizza .
:Roma :hasTopping :Ham ; :madeBy [ :name :Cook ] . :Thin rdfs:subClassOf :Food .
"""


def test_axioms_of_an_ontology_count_from_the_first_fact(tmp_path: Path, small_gamma: Gamma) -> None:
    (tmp_path / "pizza.ttl").write_text(ONTOLOGY)
    kg = KnowledgeGraph.from_file(tmp_path / "pizza.ttl")
    rules = rules_of(kg)

    def why_not(head: str, relation: str, tail: str) -> str:
        found = rules.why_not(kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail))
        inverse = kg.relation_id(relation) + kg.num_relations
        assert found == rules.why_not(kg.entity_id(tail), inverse, kg.entity_id(head))
        return (found or "").replace(":", "")

    assert "the reverse is a fact" in why_not("Basil", "hasTopping", "Margherita")
    assert "close a cycle" in why_not("Food", "subClassOf", "Ham")
    assert "disjoint" in why_not("Ham", "subClassOf", "Pizza")
    assert "no Topping, the range of" in why_not("Roma", "hasTopping", "Food")
    assert "no Pizza, the domain of" in why_not("Ham", "hasTopping", "Cheese")
    assert "has Thin already" in why_not("Margherita", "hasBase", "Ham")
    assert not why_not("Roma", "hasTopping", "Cheese") and not why_not("Roma", "hasBase", "Thin")
    answers = {p.name for p in small_gamma.predict(kg, head="Roma", relation="hasTopping")}
    assert "Cheese" in {name.split(":")[-1] for name in answers}
    assert not any(name.startswith("_:") for name in answers)
    assert not any(p.name.startswith("_:") for p in small_gamma.predict(kg, head="Roma", relation="madeBy"))


def test_disjoint_classes_count_from_both_ends_and_for_all_that_is_below(tmp_path: Path) -> None:
    more = ":Snack rdfs:subClassOf :Food . :Toast rdfs:subClassOf :Snack , :Topping . :Bread rdfs:subClassOf :Food ."
    (tmp_path / "pizza.ttl").write_text(ONTOLOGY + more)
    kg = KnowledgeGraph.from_file(tmp_path / "pizza.ttl")
    rules = rules_of(kg)
    named = {kg.entities[i].split(":")[-1]: i for i in range(kg.num_entities)}
    under, over = kg.relation_id("rdfs:subClassOf"), kg.relation_id("rdfs:subClassOf") + kg.num_relations
    for below, above, is_blocked in (
        ("Ham", "Pizza", True),
        ("Ham", "Margherita", True),
        ("Snack", "Roma", True),  # toast, a topping, would be a pizza
        ("Bread", "Pizza", False),
        ("Ham", "Snack", False),
    ):
        assert rules.blocked(named[below], under)[named[above]] == is_blocked, (below, above)
        assert rules.blocked(named[above], over)[named[below]] == is_blocked, (below, above)
        found = rules.why_not(named[below], under, named[above])
        assert ("disjoint" in (found or "")) == is_blocked


def test_properties_are_no_things_and_things_no_properties(tmp_path: Path) -> None:
    more = """:hasIngredient a owl:ObjectProperty . :hasTopping rdfs:subPropertyOf :hasIngredient .
    :Italy a :Country . :France a :Country . :hasBase rdfs:domain :Pizza ."""
    (tmp_path / "pizza.ttl").write_text(ONTOLOGY + more)
    kg = KnowledgeGraph.from_file(tmp_path / "pizza.ttl")
    rules = rules_of(kg)

    def why_not(head: str, relation: str, tail: str) -> str:
        h, r, t = kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail)
        found = rules.why_not(h, r, t)
        blocked = rules.blocked(h, r)[t] or rules.blocked(t, r + kg.num_relations)[h]
        assert blocked == (found is not None)
        return found or ""

    assert "hasIngredient is a property" in why_not("hasIngredient", "rdf:type", "Country")
    assert "Italy is no property" in why_not("Italy", "rdfs:subPropertyOf", "hasIngredient")
    assert "France is no Pizza, the domain of" in why_not("France", "hasBase", "Thin")
    asked = {(kg.entities[s], r) for s, r in promising_queries(kg, Choice.of(kg)).tolist()}
    assert not {(name, kg.relation_id("hasBase")) for name in ("France", "hasIngredient", "Ham")} & asked
    assert ("hasIngredient", kg.relation_id("rdf:type")) not in asked and ("Roma", kg.relation_id("hasBase")) in asked
    assert not why_not("Roma", "hasBase", "Thin")


def test_a_declared_single_value_counts_only_where_the_graph_keeps_to_it() -> None:
    """`hasTopping` of the pizza ontology is inverse functional: each piece of ham lies on one pizza, ham on many."""
    facts = [(f"pizza {i}", "has", f"topping {i % 5}") for i in range(20)]
    kg = KnowledgeGraph.from_triples([*facts, ("pizza 21", "base", "thin")])
    kg.report = ReadReport(axioms=(("inverse functional", "has", ""), ("functional", "base", "")))
    rules, back = Rules(kg), kg.num_relations
    assert not rules.has_single_answers(back + kg.relation_id("has"))
    assert rules.has_single_answers(kg.relation_id("base"))
    kg.report = ReadReport(axioms=(("inverse functional", "base", ""), ("some", "base", "")))
    assert not Rules(kg).has_single_answers(back + kg.relation_id("base"))
