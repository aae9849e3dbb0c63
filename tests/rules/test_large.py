"""Rules of large graphs, drawn from a sample: where the sample is everything they are those of the whole graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.graph.fewer_facts import FewerFacts
from gamma_kg.predicting import calibrate
from gamma_kg.rules import Rules, rules, rules_of, sample
from gamma_kg.rules.large import SampledRules
from gamma_kg.rules.reasons import ReasonFinder
from gamma_kg.rules.slots import MIN_WORTH, choose_queries


def facts() -> list[tuple[str, str, str]]:
    """Persons with one mother each, some who know each other both ways, and mothers who are nobody's child."""
    found = [(f"child {i}", "has mother", f"mother {i // 3}") for i in range(900)]
    found += [(f"child {i}", "knows", f"child {(i + 1) % 300}") for i in range(300)]
    found += [(f"child {(i + 1) % 300}", "knows", f"child {i}") for i in range(300)]
    found += [(f"child {i}", "lives in", f"town {i % 40}") for i in range(0, 900, 2)]
    found += [(f"town {i}", "near", f"town {(i * 7 + 1) % 40}") for i in range(40)]
    return [*found, ("child 0", "rare", "town 0"), ("town 3", "itself", "town 3")]


@pytest.fixture
def world() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(facts())


@pytest.fixture
def large(world: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> KnowledgeGraph:
    """The same graph, treated as one that is too large to be counted."""
    monkeypatch.setattr(rules, "MOST_FACTS", 0)
    monkeypatch.setattr(calibrate, "MOST_FACTS", 0)
    return world


def test_a_sample_of_everything_counts_what_the_whole_graph_counts(large: KnowledgeGraph) -> None:
    whole, sampled = Rules(large).patterns, rules_of(large)
    assert isinstance(sampled, SampledRules)
    for r in range(large.num_relations):
        seen = sampled.verdicts(r).patterns
        for name in ("facts", "proper", "reversed", "loops", "heads", "heads_several", "tails", "tails_several"):
            assert getattr(seen, name)[0] == getattr(whole, name)[r], (large.relations[r], name)
        assert sampled.is_symmetric(r) == whole.is_symmetric[r]
        assert sampled.has_loops(r) == (whole.loops[r] > 0)
        assert sampled.has_single_answers(r) == whole.is_functional[r]
    assert not sampled.describe(large.relation_id("rare")), "one fact proves nothing"


def test_slots_of_a_sample_of_everything_are_those_of_the_whole_graph(large: KnowledgeGraph) -> None:
    whole, sampled = Rules(large).slots, rules_of(large).slots
    everyone = np.arange(large.num_entities)
    for slot in range(2 * large.num_relations):
        assert np.array_equal(sampled.counts(slot, everyone), whole.count(slot))
        assert np.allclose(sampled.fits_of(slot, everyone), whole.fits_of(slot, everyone))
        assert np.allclose(sampled.worth_of(slot, everyone), whole.worth_of(slot, everyone))
        assert np.array_equal(sampled.are_fit(slot, everyone), whole.are_fit(slot, everyone))
        assert np.array_equal(sampled.are_excluded(slot, everyone), whole.excluded(slot))
        for found in (sampled.promising(slot, None), sampled.promising(slot, everyone)):
            assert np.array_equal(found[0], whole.promising(slot, None)[0])
            assert np.allclose(found[1], whole.promising(slot, None)[1])
        worth = whole.worth_of(slot, everyone)
        assert np.array_equal(whole.promising(slot, None)[0], np.flatnonzero(worth >= MIN_WORTH)), "none is left out"
    relations = np.arange(large.num_relations)
    chosen = choose_queries(large, sampled, relations, np.array([3, 5]))
    assert set(chosen[:, 0]) <= {3, 5} and len(chosen)
    assert sorted(map(tuple, chosen)) == sorted(map(tuple, choose_queries(large, whole, relations, np.array([3, 5]))))


def test_the_best_candidates_are_kept_from_roles_that_theirs_rule_out(large: KnowledgeGraph) -> None:
    sampled, whole = rules_of(large), Rules(large)
    everyone = torch.arange(large.num_entities)
    for source, relation in (("mother 1", "has mother"), ("child 7", "has mother"), ("town 1", "lives in")):
        ids = large.entity_id(source), large.relation_id(relation)
        for asked in (ids, (ids[0], sampled.inverse(ids[1]))):
            found = set(sampled.without(*asked, best=lambda count: everyone).tolist())
            assert found == set(whole.without(*asked).tolist())
    child, mother = large.entity_id("child 5"), large.entity_id("mother 9")
    assert "has mother 1 already" in (sampled.why_not(child, large.relation_id("has mother"), mother) or "")
    assert sampled.why_not(child, large.relation_id("has mother"), large.entity_id("mother 1")) is None
    other = large.entity_id("mother 1")
    assert "never a head of" in (sampled.why_not(other, large.relation_id("has mother"), mother) or "")


def test_predict_explain_and_complete_use_the_sampled_rules(
    large: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = small_gamma.predict(large, head="mother 1", relation="has mother", top_k=2000, rules=False)
    kept = small_gamma.predict(large, head="mother 1", relation="has mother", top_k=2000)
    gone = [p.name for p in free if p.name not in {q.name for q in kept}]
    assert {"mother 1", "child 3", "child 4", "child 5"} <= set(gone), "itself, and who has it as mother"
    assert len([name for name in gone if name.startswith("child")]) > 3, "and others whose roles rule it out"
    mothers = small_gamma.predict(large, head="child 5", relation="has mother", top_k=1)
    assert "has mother 1 already" in (mothers[0].why_not or "")
    assert ReasonFinder(large).find(large.entity_id("child 1"), large.relation_id("knows"), large.entity_id("child 2"))
    fitted = small_gamma.calibrate(large, max_hidden=20)
    assert fitted.num_queries == 40
    monkeypatch.setattr("gamma_kg.complete.proposals.LEAST_PROBABILITY", 1e-6)  # the weights are random
    found = complete(small_gamma, large, relations=["lives in"], entities=["child 1", "child 3"], top=5, min_cases=0)
    assert found.facts and {fact.head for fact in found.facts} <= {"child 1", "child 3"}
    assert all(fact.tail.startswith("town") for fact in found.facts)


def test_a_sample_takes_entities_from_all_over_the_graph(
    world: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "BLOCKS", 8)
    monkeypatch.setattr(sample, "BLOCK_ENTITIES", 4)
    some = sample.EntitySample(world.edges)
    assert len(some) == 32 and some.entity_n[0] == 0 and some.entity_n[-1] == world.num_entities - 1
    assert np.diff(some.entity_n).max() < 2 * world.num_entities / 8
    known = set(map(tuple, world.triples.tolist()))
    taken = [tuple(fact) for fact in some.facts(10**6).tolist()]
    inside = set(some.entity_n.tolist())
    assert sorted(taken) == sorted(fact for fact in known if {fact[0], fact[2]} & inside)
    for slot in range(2 * world.num_relations):
        assert len(some.pairs(slot, 3, 2)) <= 3


def test_a_graph_with_fewer_facts_is_the_graph_built_without_them(world: KnowledgeGraph) -> None:
    gone = world.triples.numpy()[[3, 950, len(world) - 1]]
    fewer = KnowledgeGraph.of_facts(FewerFacts(world, gone), world.entities, world.relations)
    rest = np.delete(world.triples.numpy(), [3, 950, len(world) - 1], axis=0)
    assert len(fewer) == len(rest)
    assert sorted(fewer.triples.tolist()) == sorted(rest.tolist())
    built = KnowledgeGraph(rest, world.entities, world.relations).edges
    for source, relation in ((int(gone[0, 0]), int(gone[0, 1])), (5, 0), (int(gone[2, 0]), int(gone[2, 1]))):
        assert (
            fewer.answers(source, relation).tolist()
            == KnowledgeGraph(rest, world.entities, world.relations).answers(source, relation).tolist()
        )
    assert fewer.edges.num_edges == built.num_edges
    assert fewer.fingerprint() != world.fingerprint()
