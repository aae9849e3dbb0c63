"""What `describe` says of a graph is what is in it."""

from __future__ import annotations

import json

import pytest

from gamma_kg import KnowledgeGraph
from gamma_kg.demo import demo_graph


def ring(num: int) -> list[tuple[str, str, str]]:
    return [(f"n{i}", "next", f"n{(i + 1) % num}") for i in range(num)]


def test_counts_types_components_and_degrees() -> None:
    facts = [*ring(12), ("x", "type", "Thing"), ("y", "type", "Thing"), ("z", "type", "Other")]
    kg = KnowledgeGraph.from_triples(facts, entities=sorted({e for f in facts for e in (f[0], f[2])} | {"alone"}))
    found = kg.describe()
    assert (found.facts, found.relations, found.entities, found.isolated) == (15, 2, 18, 1)
    assert found.types == (("Thing", 2), ("Other", 1))
    assert (found.components, found.largest_component) == (3, 12)
    assert found.median_degree == 2 and dict(found.most_connected)["Thing"] == 2


def test_relations_come_with_examples_and_patterns() -> None:
    pairs = [(f"a{i}", f"b{i}") for i in range(20)]
    facts = [("x", "rare", "x"), *ring(30)]
    facts += [fact for a, b in pairs for fact in ((a, "married to", b), (b, "married to", a))]
    relations = {r.name: r for r in KnowledgeGraph.from_triples(facts).describe().relation_facts}
    assert list(relations) == ["married to", "next", "rare"]
    assert relations["married to"].example == ("a0", "b0") and relations["married to"].facts == 40
    assert "symmetric: 40 of 40 facts also hold in reverse" in relations["married to"].patterns
    assert "never symmetric: 0 of 30 facts also hold in reverse" in relations["next"].patterns
    assert "one tail a head: 30 heads, 30 facts" in relations["next"].patterns
    assert relations["rare"].patterns == ("1 facts from a thing to itself",)


def test_of_a_large_graph_only_what_one_pass_tells_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamma_kg.graph.describe.MAX_SORTED", 3)
    found = KnowledgeGraph.from_triples([*ring(5), ("a", "likes", "b")]).describe()
    assert found.components is None and found.relation_facts[0].heads is None and not found.types
    assert [(r.name, r.facts, r.example) for r in found.relation_facts] == [
        ("next", 5, ("n0", "n1")),
        ("likes", 1, ("a", "b")),
    ]
    assert "next  5 facts; n0 → n1" in str(found)


def test_names_are_found_by_beginning_inside_and_likeness() -> None:
    kg = KnowledgeGraph.from_triples([("Republic of Kenya", "borders", "Uganda"), ("Kenyatta", "lives in", "Nairobi")])
    assert kg.describe(search="kenya").found_names == ("Kenyatta", "Republic of Kenya")
    assert kg.describe(search="Ugandaa").found_names == ("Uganda",)
    assert "names found: none" in str(kg.describe(search="qqqqq"))


def test_the_demo_graph_is_described_for_people_and_programs() -> None:
    found = demo_graph().describe()
    assert f"{found.facts:,} facts about" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["relation_facts"][0]["facts"] >= 100


def test_a_query_is_timed_once_warm() -> None:
    from gamma_kg.graph.describe import describe

    asked: list[tuple[int, int]] = []
    kg = KnowledgeGraph.from_triples(ring(5))
    found = describe(kg, ask=lambda head, relation: asked.append((head, relation)) or " (whole graph)")
    assert asked == [(0, 0), (0, 0)] and "s here (whole graph)" in str(found)
