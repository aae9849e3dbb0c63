"""Reasons: rules around a fact with their support; paths of one kind are one reason."""

from __future__ import annotations

import pytest

from gamma_kg import KnowledgeGraph
from gamma_kg.rules.reasons import Reason, ReasonFinder


@pytest.fixture(scope="module")
def cities() -> KnowledgeGraph:
    facts = []
    for i in range(30):
        facts += [(f"city {i}", "part of", "Kenya"), (f"person {i}", "born in", f"city {i}")]
        facts += [(f"city {i}", "is a", "town")] if i < 20 else []
        facts += [(f"person {i}", "citizen of", "Kenya")] if i < 25 else []
        facts += [(f"person {i}", "lives in", f"city {i}")] if i % 2 else []
    facts += [(f"thing {i}", "is a", "rock") for i in range(60)]
    # Three ways from ann to zed of the same kind.
    facts += [("ann", "knows", f"friend {i}") for i in range(3)] + [(f"friend {i}", "likes", "zed") for i in range(3)]
    facts += [("bob", "knows", "friend 0"), ("bob", "meets", "zed")]
    return KnowledgeGraph.from_triples(facts)


def find(kg: KnowledgeGraph, head: str, relation: str, tail: str) -> list[Reason]:
    return ReasonFinder(kg).find(kg.entity_id(head), kg.relation_id(relation), kg.entity_id(tail), limit=20)


def test_things_that_share_a_fact_are_counted_without_the_head_itself(cities: KnowledgeGraph) -> None:
    reasons = {reason.text: reason for reason in find(cities, "city 25", "is a", "town")}
    reason = reasons["20 of 29 other things that «part of» Kenya also «is a» town"]
    assert (reason.count, reason.of, reason.kind) == (20, 29, "alike heads")
    assert reason.facts[0] == ("city 25", "part of", "Kenya")
    assert all(relation == "is a" and tail == "town" for _, relation, tail in reason.facts[1:])
    # A fact of the graph is not a reason for itself, nor counted among the others.
    known = next(r for r in find(cities, "city 3", "is a", "town") if r.facts[0] == ("city 3", "part of", "Kenya"))
    assert (known.count, known.of) == (19, 29)


def test_another_link_between_the_two_counts_over_the_whole_relation(cities: KnowledgeGraph) -> None:
    reason = next(r for r in find(cities, "person 4", "lives in", "city 4") if r.kind == "other link")
    assert (reason.count, reason.of) == (15, 30)
    assert reason.text == "where x «born in» y, also x «lives in» y in 15 of 30 cases"


def test_paths_of_one_kind_are_one_reason(cities: KnowledgeGraph) -> None:
    paths = [r for r in find(cities, "ann", "meets", "zed") if r.kind == "path"]
    assert len(paths) == 1
    assert paths[0].num_paths == 3 and (paths[0].count, paths[0].of) == (1, 2)
    assert "friend 0, friend 1, friend 2" in paths[0].text
    citizen = next(r for r in find(cities, "person 27", "citizen of", "Kenya") if r.kind == "path")
    assert (citizen.count, citizen.of) == (25, 30)


def test_the_best_supported_reason_comes_first(cities: KnowledgeGraph) -> None:
    shares = [reason.count / reason.of for reason in find(cities, "person 27", "citizen of", "Kenya")]
    assert shares and shares[0] == max(shares)


def test_what_is_no_more_than_chance_is_left_out(cities: KnowledgeGraph) -> None:
    assert not any("rock" in reason.text for reason in find(cities, "city 25", "is a", "town"))
    assert find(cities, "thing 1", "knows", "Kenya") == []


def test_a_symmetric_relation_gives_one_kind_of_path_whichever_way_it_is_read() -> None:
    facts = [(f"c{i}", "borders", f"c{(i + 1) % 60}") for i in range(60)]
    facts += [(tail, relation, head) for head, relation, tail in facts]
    paths = [
        r for r in find(KnowledgeGraph.from_triples([*facts, ("c1", "trades with", "c3")]), "c5", "trades with", "c7")
    ]
    assert len([reason for reason in paths if reason.kind == "path"]) <= 1
    kg = KnowledgeGraph.from_triples([*facts, ("c1", "trades with", "c3")])
    kinds = ReasonFinder(kg)._paths(kg.entity_id("c5"), kg.relation_id("trades with"), kg.entity_id("c7"))
    assert len(list(kinds)) == 1


def test_a_case_or_two_are_no_reason_to_go_by(cities: KnowledgeGraph) -> None:
    def has_one(head: str, relation: str, tail: str, **options: int) -> bool:
        fact = cities.entity_id(head), cities.relation_id(relation), cities.entity_id(tail)
        return ReasonFinder(cities).has_one_to_go_by(*fact, **options)

    assert has_one("city 25", "is a", "town"), "20 of 29 others are"
    assert not has_one("ann", "meets", "zed"), "one of two"
    assert has_one("ann", "meets", "zed", cases=1)
    assert not has_one("city 25", "is a", "rock")
    assert not has_one("city 25", "is a", "town", cases=30)


def test_of_hundreds_of_kinds_of_paths_those_with_most_paths_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [("a", f"r{i}", "m") for i in range(12)] + [("m", f"s{i}", "b") for i in range(12)]
    facts += [("a", "r0", "n"), ("n", "s0", "b"), ("a", "asked", "c")]
    kg = KnowledgeGraph.from_triples(facts)
    finder, counted = ReasonFinder(kg), []
    monkeypatch.setattr(ReasonFinder, "_path_support", lambda self, *kind: (counted.append(kind), (1, 1))[1])
    found = finder.find(kg.entity_id("a"), kg.relation_id("asked"), kg.entity_id("b"), limit=200)
    assert len(counted) == 50, "144 pairs of relations lead from a to b"
    assert max(reason.num_paths for reason in found) == 2, "the one that leads there twice is among them"
