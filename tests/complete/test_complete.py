"""Completion asks what is worth asking, leaves known facts out, keeps to its budget, and goes on after a stop."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gamma_kg import DataError, Gamma, KnowledgeGraph
from gamma_kg.complete import choice, proposals
from gamma_kg.complete import complete as complete_with_reasons
from gamma_kg.complete.review import write_review
from gamma_kg.demo import demo_split
from gamma_kg.io.journal import Journal
from gamma_kg.rules import Rules
from gamma_kg.rules.slots import MIN_WORTH, SLOTS_PER_TICK, Slots, choose_queries

# In graphs of a few facts no reason has three cases; what is tested here needs none.
complete = partial(complete_with_reasons, min_cases=0)


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
    worth = slots.worth_of(slot, np.arange(countries.num_entities))
    assert worth[countries.entity_id("A")] == 0
    assert worth[countries.entity_id("F")] > 2 * worth[countries.entity_id("city A")]


def test_one_role_that_rules_a_slot_out_is_enough(countries: KnowledgeGraph) -> None:
    # Cities lie in something, as countries do, but no capital of anything borders anything.
    fits = Slots(countries).fits_of(countries.relation_id("borders"), np.arange(countries.num_entities))
    assert fits[countries.entity_id("city A")] < 0.2 < fits[countries.entity_id("C")]


def test_no_country_of_a_country_is_asked_for_or_proposed(small_gamma: Gamma) -> None:
    """A table of things with a column: its values are no rows of the table (Thailand was said to lie in the USA)."""
    facts = [(f"airport {i}", "country", "USA" if i % 150 else f"land {i}") for i in range(600)]
    facts += [(f"airport {i}", "state", f"state {i % 20}") for i in range(600)]
    kg = KnowledgeGraph.from_triples([*facts, ("airport 601", "state", "state 3")])
    country = kg.relation_id("country")
    queries = proposals.promising_queries(kg, choice.Choice.of(kg))
    asked_of = {kg.entities[source] for source, relation in queries.tolist() if relation == country}
    assert asked_of.isdisjoint({"USA", "land 150", "land 300"})
    for fact in complete(small_gamma, kg, top=1000).facts:
        assert not fact.head.startswith(("USA", "land")) or fact.relation != "country"


def test_nothing_is_proposed_of_terms_that_an_ontology_only_refers_to(small_gamma: Gamma, tmp_path: Path) -> None:
    stanza = "[Term]\nid: GO:{0}\nname: part {0}\nis_a: GO:{1}\nrelationship: part_of {2}\n\n"
    text = "".join(stanza.format(i, i // 2, f"CL:{i % 4}" if i % 8 == 0 else f"GO:{i - 1}") for i in range(1, 60))
    text += "".join(f"[Term]\nid: GO:{i}\nrelationship: part_of GO:{i - 2}\n\n" for i in range(5, 60, 4))
    (tmp_path / "go.obo").write_text("ontology: go\n\n[Term]\nid: GO:0\nname: root\n\n" + text)
    kg = KnowledgeGraph.from_file(tmp_path / "go.obo")
    asked = proposals.promising_queries(kg, choice.Choice.of(kg))
    asked_of = {kg.entities[source] for source, relation in asked.tolist() if relation < kg.num_relations}
    assert asked_of and not [name for name in asked_of if "CL_" in name]
    facts = complete(small_gamma, kg, top=1000).facts
    assert facts and not [fact for fact in facts if "CL_" in fact.head]


def test_queries_come_most_promising_first_and_only_for_the_relations_named(countries: KnowledgeGraph) -> None:
    relation = countries.relation_id("capital of")
    slots = Slots(countries)
    queries = choose_queries(countries, slots, np.array([relation]))
    assert set(queries[:, 1] % countries.num_relations) == {relation}
    worth = [slots.worth_of(slot, np.array([source]))[0] for source, slot in queries.tolist()]
    assert worth == sorted(worth, reverse=True)


def test_a_relation_with_much_missing_leaves_turns_to_others() -> None:
    many = [(f"a{i}", "likes", f"b{i % 7}") for i in range(60)] + [
        (f"a{i}", "likes", f"b{(i + 1) % 7}") for i in range(60)
    ]
    few = [(f"c{i}", "owns", f"d{i % 3}") for i in range(9)] + [(f"c{i}", "owns", f"d{(i + 1) % 3}") for i in range(3)]
    kg = KnowledgeGraph.from_triples(many + few)
    queries = choose_queries(kg, Slots(kg), np.arange(2))
    relation = queries[:, 1] % 2
    owns = np.flatnonzero(relation == kg.relation_id("owns"))
    assert len(owns) > 3 and (relation == kg.relation_id("likes")).sum() > 30
    # With two relations they come one after the other, as long as both have some.
    assert (np.diff(owns) == 2).all() and owns[0] <= 1
    alone = choose_queries(kg, Slots(kg), np.array([kg.relation_id("likes")]))
    assert (alone == queries[relation == kg.relation_id("likes")]).all()


def test_nobody_worth_asking_is_passed_over() -> None:
    """They are found from the roles that agree with a slot; the definition looks at everybody."""
    rng = np.random.default_rng(4)
    heads, tails = (400 * rng.random((2, 1500)) ** 2).astype(int)
    relations = (30 * rng.random(1500) ** 2).astype(int)
    kg = KnowledgeGraph.from_triples(
        [(f"e{h}", f"r{r}", f"e{t}") for h, r, t in zip(heads, relations, tails, strict=True)]
    )
    slots, everyone = Slots(kg), np.arange(kg.num_entities)
    chosen = []
    for slot in range(kg.num_types):
        worth = slots.worth_of(slot, everyone)
        sources, found = slots.promising(slot, None)
        assert np.array_equal(sources, np.flatnonzero(worth >= MIN_WORTH))
        assert np.array_equal(found, worth[sources])
        chosen.append(len(sources))
    assert 0 < min(chosen) < kg.num_entities // 2


def test_of_too_many_queries_the_most_promising_are_kept(
    countries: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    kg, slots = countries, Slots(countries)
    every = np.arange(kg.num_relations)
    all_of_them = choose_queries(kg, slots, every)
    worth = sorted((float(slots.worth_of(r, np.array([e]))[0]) for e, r in all_of_them.tolist()), reverse=True)
    monkeypatch.setattr("gamma_kg.rules.slots.MOST_QUERIES", 9)
    assert len(all_of_them) > 2 * 9 + 9
    kept = choose_queries(kg, slots, every)
    assert len({tuple(query) for query in kept.tolist()}) == 9
    found = sorted((float(slots.worth_of(r, np.array([e]))[0]) for e, r in kept.tolist()), reverse=True)
    assert found == worth[:9]


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
    assert rest.facts == whole.facts  # to the last bit, though its blocks were others
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
    assert sum(json.loads(line.partition(" ")[2])["queries"] for line in lines[1:]) == 8


@pytest.mark.parametrize(
    "options", [{"top": 0}, {"min_probability": 1.5}, {"relations": ["nothing"]}, {"min_cases": -1}]
)
def test_bad_options_are_refused(countries: KnowledgeGraph, small_gamma: Gamma, options: dict) -> None:
    with pytest.raises(DataError):
        complete(small_gamma, countries, **options)


def test_held_out_facts_of_the_demo_graph_are_found() -> None:
    split = demo_split()
    kg = KnowledgeGraph(split.graph, split.entities, split.relations)
    held_out = {(kg.entities[h], kg.relations[r], kg.entities[t]) for h, r, t in split.queries.tolist()}
    wanted = {fact for fact in held_out if fact[1] == "capital of"} or held_out
    found = complete_with_reasons(Gamma.from_pretrained(), kg, relations=["capital of"], top=20)
    assert len(wanted & {(fact.head, fact.relation, fact.tail) for fact in found.facts}) >= 1


def test_one_relation_does_not_fill_the_list_while_others_have_proposals(
    countries: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = complete(small_gamma, countries, top=1000).facts
    monkeypatch.setattr(choice, "LEAST_CAP", 2)
    most = [fact.relation for fact in everything]
    assert len(set(most)) > 1
    listed = complete(small_gamma, countries, top=6).facts
    assert len(listed) == 6 and len({fact.relation for fact in listed}) > 1
    assert [fact.probability for fact in listed] == sorted((f.probability for f in listed), reverse=True)
    strict = [fact.relation for fact in complete(small_gamma, countries, top=1000, max_per_relation=1).facts]
    assert sorted(strict) == sorted(set(most))
    # A list that would not be full takes more of a relation.
    assert len(complete(small_gamma, countries, relations=["borders"], top=5).facts) == 5


def test_the_list_ends_where_facts_are_no_longer_likely_unless_none_is(
    countries: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "FEW_UNLIKELY", 3)
    everything = complete(small_gamma, countries, top=1000).facts
    middle = everything[len(everything) // 2].probability
    likely = complete(small_gamma, countries, top=1000, likely_from=middle).facts
    assert likely == [fact for fact in everything if fact.probability >= middle] and len(likely) > 3
    assert complete(small_gamma, countries, top=1000, likely_from=1.0).facts == everything[:3]
    with_bound = {everything[-1].relation: 0.0}
    found = complete(small_gamma, countries, top=1000, likely_from=1.0, min_probability=with_bound).facts
    assert found == [fact for fact in everything if fact.relation == everything[-1].relation]


def test_what_no_reason_speaks_for_is_not_proposed(small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "LEAST_PROBABILITY", 1e-9)
    facts = [(f"cook {i}", "likes", "salt") for i in range(20)] + [(f"cook {i}", "likes", "oil") for i in range(15)]
    facts += [(f"boy {i}", "likes", f"toy {i % 4}") for i in range(8)]
    facts += [(f"rock {i}", "lies on", f"rock {i // 2}") for i in range(1, 80)]
    kg = KnowledgeGraph.from_triples(facts)
    everything = complete(small_gamma, kg, top=1000).facts
    found = complete_with_reasons(small_gamma, kg, top=1000).facts
    assert {(fact.head, fact.tail) for fact in found} >= {(f"cook {i}", "oil") for i in range(15, 20)}
    assert not any({fact.head[:3], fact.tail[:3]} & {"boy", "toy"} for fact in found)
    assert any({fact.head[:3], fact.tail[:3]} & {"boy", "toy"} for fact in everything)
    without_rules = complete_with_reasons(small_gamma, kg, top=1000, rules=False).facts
    assert len(without_rules) >= len(everything) > len(found)


def test_a_second_value_is_not_proposed_where_few_have_two(small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked from the class, a thing fits well; asked from the thing, nobody would look for another class."""
    monkeypatch.setattr(proposals, "LEAST_PROBABILITY", 1e-9)
    facts = [(f"thing {i}", "sort", f"sort {i % 3}") for i in range(60)]
    facts += [(f"thing {i}", "made by", f"maker {i % 5}") for i in range(66)]
    kg = KnowledgeGraph.from_triples(facts)
    found = {fact.head for fact in complete(small_gamma, kg, relations=["sort"], top=1000).facts}
    assert "thing 61" in found and found.isdisjoint({f"thing {i}" for i in range(60)})
    source, sort = kg.entity_id("sort 0"), kg.relation_id("sort")
    blocked = Rules(kg).unasked.blocked(source, sort + kg.num_relations)
    assert blocked[kg.entity_id("thing 1")] and not blocked[kg.entity_id("thing 61")]


def test_a_list_holds_no_two_facts_that_exclude_each_other(small_gamma: Gamma) -> None:
    facts = [(f"c{i}", "rdfs:subClassOf", f"c{(i - 1) // 3}") for i in range(1, 120)]
    kg = KnowledgeGraph.from_triples([*facts, ("a", "rdfs:subClassOf", "c1"), ("b", "rdfs:subClassOf", "c1")])
    a, b, wider = kg.entity_id("a"), kg.entity_id("b"), kg.relation_id("rdfs:subClassOf")
    found = [(a, wider, b, 0.6, 1.0), (b, wider, a, 0.5, 1.0)]
    chosen = choice.Choice.of(kg, top=5)
    names = [(fact.head, fact.tail) for fact in proposals.listed(kg, chosen, found, rules=True)]
    assert names == [("a", "b")]
    assert len(proposals.listed(kg, chosen, found, rules=False)) == 2


def test_bounds_may_differ_by_relation_and_relations_be_left_out(countries: KnowledgeGraph, small_gamma: Gamma) -> None:
    everything = complete(small_gamma, countries, top=1000).facts
    found = complete(small_gamma, countries, top=1000, min_probability={"borders": 1.0, "": 0.0}).facts
    assert found == [fact for fact in everything if fact.relation != "borders" or fact.probability == 1]
    assert complete(small_gamma, countries, top=1000, exclude_relations=["borders"]).facts == found
    with pytest.raises(DataError, match="no relation is left"):
        complete(small_gamma, countries, relations=["borders"], exclude_relations=["borders"])


def test_a_type_means_its_things_and_those_of_types_below_it(small_gamma: Gamma) -> None:
    facts = [("city", "subclass of", "place"), ("Rome", "instance of", "city"), ("Ann", "instance of", "person")]
    facts += [("Rome", "near", "Ostia"), ("Ann", "near", "Rome"), ("Ostia", "near", "Rome"), ("Bob", "near", "Ann")]
    kg = KnowledgeGraph.from_triples(facts)
    found = complete(small_gamma, kg, type="place", top=1000).facts
    assert found and all({"Rome", "city", "place"} & {fact.head, fact.tail} for fact in found)
    with pytest.raises(DataError, match=r"nothing has the type 'Bob'; the commonest types here: .*city"):
        complete(small_gamma, kg, type="Bob")


def test_ctrl_c_gives_what_was_found_if_so_asked(
    countries: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "BLOCK_QUERIES", 4)
    whole = complete(small_gamma, countries, top=1000).facts

    def interrupt(asked: int, in_all: int) -> None:
        if asked >= 8:
            raise KeyboardInterrupt

    options = {"top": 1000, "journal": tmp_path / "j"}
    part = complete(small_gamma, countries, **options, progress=interrupt, on_interrupt="return")
    assert part.was_interrupted and part.queries_asked == 8 and 0 < len(part.facts) < len(whole)
    # Gone on with, the facts are the same to the last bit.
    assert complete(small_gamma, countries, **options).facts == whole


@pytest.fixture
def many_relations() -> KnowledgeGraph:
    """More slots than are looked at between two looks at the clock."""
    relations = range(SLOTS_PER_TICK)
    return KnowledgeGraph.from_triples([(f"e{(r + i) % 9}", f"r{r}", f"e{i}") for r in relations for i in range(9)])


def test_a_budget_that_ends_while_it_is_chosen_what_to_ask_is_kept(
    many_relations: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path
) -> None:
    journal = tmp_path / "j"
    found = complete(small_gamma, many_relations, budget_seconds=0, journal=journal)
    assert (found.facts, found.queries_asked, found.queries_in_all) == ([], 0, None)
    assert not found.is_finished and not found.was_interrupted and journal.exists()
    assert complete(small_gamma, many_relations, budget_seconds=3600, journal=journal).is_finished
    with pytest.raises(DataError, match="the time ended while it was being chosen what to ask; give it more"):
        small_gamma.calibrate(many_relations, budget_seconds=0)


def test_ctrl_c_while_it_is_chosen_what_to_ask_keeps_what_was_found_before(
    countries: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "BLOCK_QUERIES", 4)

    def interrupt(*at: int) -> None:
        if at[0]:
            raise KeyboardInterrupt

    options = {"top": 1000, "journal": tmp_path / "j", "on_interrupt": "return"}
    before = complete(small_gamma, countries, **options, progress=interrupt)
    assert before.queries_asked == 4 and before.facts
    monkeypatch.setattr(Slots, "promising", lambda *_: interrupt(1))
    found = complete(small_gamma, countries, **options)
    assert found.was_interrupted and found.queries_in_all is None and found.facts == before.facts


def test_a_full_disk_is_one_error(
    countries: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullFile:
        def write(self, text: str) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            raise OSError(28, "No space left on device")

    def full(journal: Journal, *parts: object) -> None:
        started(journal, *parts)
        assert journal._file is not None
        journal._file.close()
        journal._file = FullFile()  # type: ignore[assignment]

    started = Journal.__init__
    monkeypatch.setattr(Journal, "__init__", full)
    with pytest.raises(DataError, match="No space left on device"):
        complete(small_gamma, countries, journal=tmp_path / "j")


def test_the_review_page_holds_names_as_text_only(
    countries: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path
) -> None:
    bad = "</script><script>alert(1)</script>"
    kg = KnowledgeGraph.from_triples(
        [(bad if x == "A" else x, r, bad if y == "A" else y) for x, r, y in named(countries)]
    )
    facts = complete(small_gamma, kg, top=50).facts
    write_review(tmp_path / "page.html", kg, facts, title=bad)
    page = (tmp_path / "page.html").read_text()
    assert bad not in page and page.count("<script") == 2 and page.count("</script>") == 2
    record = json.loads(page.split('id="record">')[1].split("</script>")[0])
    assert [row["names"] for row in record["facts"]] == [[f.head, f.relation, f.tail] for f in facts]
    reasons = [reason for row in record["facts"] for reason in row["reasons"]]
    # The page gives a percentage only where there are cases enough for one.
    assert reasons and all(0 < reason["share"] <= 1 <= reason["of"] for reason in reasons)
    # Nothing is fetched from anywhere.
    assert "http-equiv" in page and "src=" not in page and "@RECORD@" not in page and "@KEY@" not in page


def named(kg: KnowledgeGraph) -> list[tuple[str, str, str]]:
    return [(kg.entities[h], kg.relations[r], kg.entities[t]) for h, r, t in kg.triples.tolist()]
