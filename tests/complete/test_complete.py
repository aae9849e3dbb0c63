"""Completion asks what is worth asking, leaves known facts out, keeps to its budget, and goes on after a stop."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gamma_kg import DataError, Gamma, KnowledgeGraph
from gamma_kg.complete import complete, proposals
from gamma_kg.demo import demo_split
from gamma_kg.rules.slots import Slots, choose_queries


@pytest.fixture
def countries() -> KnowledgeGraph:
    """Six countries with neighbours, all but F with a capital; cities lie in countries, countries in a region."""
    triples = []
    for name in "ABCDE":
        triples += [(f"city {name}", "capital of", name), (f"city {name}", "lies in", name)]
    for name in "ABCDEF":
        triples += [(name, "lies in", "Region"), (f"town {name}", "lies in", name)]
    for a, b in pairwise("ABCDEF"):
        triples += [(a, "borders", b), (b, "borders", a)]
    return KnowledgeGraph.from_triples(triples)


def test_a_missing_capital_is_asked_for_and_a_second_one_is_not(countries: KnowledgeGraph) -> None:
    slots = Slots(countries)
    slot = countries.relation_id("capital of") + countries.num_relations
    worth = slots.worth(slot)
    assert worth[countries.entity_id("A")] == 0
    assert worth[countries.entity_id("F")] > 2 * worth[countries.entity_id("city A")]


def test_one_role_that_rules_a_slot_out_is_enough(countries: KnowledgeGraph) -> None:
    # Cities lie in something, as countries do, but no capital of anything borders anything.
    fits = Slots(countries).fit(countries.relation_id("borders"))
    assert fits[countries.entity_id("city A")] < 0.2 < fits[countries.entity_id("C")]


def test_queries_come_most_promising_first_and_only_for_the_relations_named(countries: KnowledgeGraph) -> None:
    relation = countries.relation_id("capital of")
    slots = Slots(countries)
    queries = choose_queries(countries, slots, np.array([relation]))
    assert set(queries[:, 1] % countries.num_relations) == {relation}
    worth = [slots.worth(slot)[source] for source, slot in queries.tolist()]
    assert worth == sorted(worth, reverse=True)


def test_only_facts_about_the_entities_named_are_proposed(countries: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = complete(small_gamma, countries, entities=["F"], top=1000)
    assert found.facts and all("F" in (fact.head, fact.tail) for fact in found.facts)
    assert found.queries_in_all < complete(small_gamma, countries, top=1000).queries_in_all


def test_no_known_fact_is_proposed_and_none_twice(countries: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = complete(small_gamma, countries, top=1000)
    assert found.is_finished and found.facts
    facts = [(fact.head, fact.relation, fact.tail) for fact in found.facts]
    known = {
        (countries.entities[h], countries.relations[r], countries.entities[t]) for h, r, t in countries.triples.tolist()
    }
    assert not known & set(facts)
    assert len(set(facts)) == len(facts)
    assert all(fact.head != fact.tail for fact in found.facts)
    probabilities = [fact.probability for fact in found.facts]
    assert probabilities == sorted(probabilities, reverse=True) and 0 <= min(probabilities) <= max(probabilities) <= 1


def test_top_min_probability_and_relations_are_kept_to(countries: KnowledgeGraph, small_gamma: Gamma) -> None:
    everything = complete(small_gamma, countries, top=1000).facts
    assert complete(small_gamma, countries, top=3).facts == everything[:3]
    bound = everything[4].probability
    above = complete(small_gamma, countries, min_probability=bound).facts
    assert 0 < len(above) < len(everything) and all(fact.probability >= bound for fact in above)
    assert {f.relation for f in complete(small_gamma, countries, relations=["borders"]).facts} == {"borders"}


def test_a_budget_stops_the_run_and_the_journal_takes_it_up(
    countries: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "BLOCK_QUERIES", 4)
    whole = complete(small_gamma, countries, top=1000)
    journal = tmp_path / "facts.tsv.progress"
    clock = iter(range(10_000))
    monkeypatch.setattr(proposals.time, "monotonic", lambda: next(clock))
    part = complete(small_gamma, countries, top=1000, budget_seconds=3, journal=journal)
    assert 0 < part.queries_asked < part.queries_in_all
    assert journal.exists()
    # A crash in the middle of a line costs that line only.
    with journal.open("a") as file:
        file.write('{"queries": 4, "fac')
    rest = complete(small_gamma, countries, top=1000, journal=journal)
    assert rest.is_finished
    assert {(f.head, f.relation, f.tail): f.probability for f in rest.facts} == pytest.approx(
        {(f.head, f.relation, f.tail): f.probability for f in whole.facts}, rel=1e-4
    )
    assert not journal.exists()


def test_a_journal_of_another_run_is_refused(countries: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path) -> None:
    journal = tmp_path / "j"
    complete(small_gamma, countries, budget_seconds=0, journal=journal)
    with pytest.raises(DataError, match="another relations was stopped here"):
        complete(small_gamma, countries, relations=["borders"], journal=journal)
    journal.write_text("what is this")
    with pytest.raises(DataError, match="not the record of an earlier run"):
        complete(small_gamma, countries, journal=journal)


def test_an_interrupted_run_keeps_what_it_found(
    countries: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "BLOCK_QUERIES", 4)

    def interrupt(asked: int, in_all: int) -> None:
        if asked >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete(small_gamma, countries, journal=tmp_path / "j", progress=interrupt)
    lines = (tmp_path / "j").read_text().splitlines()
    assert sum(json.loads(line)["queries"] for line in lines[1:]) == 8


@pytest.mark.parametrize("options", [{"top": 0}, {"min_probability": 1.5}, {"relations": ["nothing"]}])
def test_bad_options_are_refused(countries: KnowledgeGraph, small_gamma: Gamma, options: dict) -> None:
    with pytest.raises(DataError):
        complete(small_gamma, countries, **options)


def test_held_out_facts_of_the_demo_graph_are_found() -> None:
    split = demo_split()
    kg = KnowledgeGraph(split.graph, split.entities, split.relations)
    held_out = {(kg.entities[h], kg.relations[r], kg.entities[t]) for h, r, t in split.queries.tolist()}
    wanted = {fact for fact in held_out if fact[1] == "capital of"} or held_out
    found = complete(Gamma.from_pretrained(), kg, relations=["capital of"], top=20)
    assert len(wanted & {(fact.head, fact.relation, fact.tail) for fact in found.facts}) >= 1
