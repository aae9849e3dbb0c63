"""Which relations hold between two entities, on graphs that are answered from neighbourhoods."""

import numpy as np
import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.data.benchmark import Split
from gamma_kg.evaluation.ranking import RivalCounts
from gamma_kg.evaluation.relations import RelationPlan, RelationRanker
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.growth import grow
from gamma_kg.nn.local_answers import WIDE_SHARE
from gamma_kg.predicting import background, pair_scores
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.rules import rules_of

ALL = {"top_k": 100, "include_known": True, "rules": False}


def test_where_all_facts_are_near_a_pair_is_scored_as_in_the_whole_graph(
    family: KnowledgeGraph, small_gamma: Gamma
) -> None:
    whole = small_gamma.predict(family, head="Ann", tail="Bob", local="off", **ALL)
    near = small_gamma.predict(family, head="Ann", tail="Bob", local=1000, **ALL)
    assert [p.name for p in near] == [p.name for p in whole] and len(near) == family.num_relations
    for one, other in zip(near, whole, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.branch_weights == pytest.approx(other.branch_weights, abs=1e-5)
        assert (one.local, other.local) == (1000, None)


def test_both_ends_are_in_one_wide_and_one_near_neighbourhood_however_far_apart(
    town: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, tail, triples = 7, 60, 40
    monkeypatch.setattr(background, "make_background", None)  # no relation needs one
    monkeypatch.setattr(pair_scores, "batch_size", lambda *_: 3)
    asked = {"head": town.entities[head], "tail": town.entities[tail], "local": triples}
    found = {p.name: p.score for p in small_gamma.predict(town, **asked, **ALL)}
    both = Starts.of_weights(torch.zeros(2, dtype=torch.long), torch.tensor([head, tail]), torch.ones(2), 1)
    for relation, name in enumerate(town.relations):
        expected = 0.0
        for size, share in ((triples, WIDE_SHARE), (triples // 4, 1 - WIDE_SHARE)):
            hood = grow(town.edges, both, size)
            assert len(hood.entity_N) < town.num_entities
            ends = [int((hood.entity_N == end).nonzero()[0, 0]) for end in (head, tail)]
            relation_B = torch.tensor([relation, relation + town.num_relations])
            with torch.no_grad():
                states = small_gamma.model.relation_states(town.relation_graph, town.edges.inverse, relation_B)
                score_BN = small_gamma.model.score_entities(
                    hood.edges, states, Starts.single(torch.tensor(ends)), relation_B
                ).score_BC
            expected += share * float(score_BN[0, ends[1]] + score_BN[1, ends[0]]) / 2
        assert found[name] == pytest.approx(expected, abs=1e-5)


def test_both_ends_are_inside_where_more_facts_lie_between_them_than_were_asked_for(small_gamma: Gamma) -> None:
    between = [("Ann", f"r{number}", "Bob") for number in range(12)]
    kg = KnowledgeGraph.from_triples([*between, ("Ann", "r0", "Cid"), ("Bob", "r1", "Dee"), ("Cid", "r2", "Dee")])
    ends = torch.tensor([kg.entity_id("Ann"), kg.entity_id("Bob")])
    starts = Starts.of_weights(torch.zeros(2, dtype=torch.long), ends, torch.ones(2), 1)
    assert len(grow(kg.edges, starts, 8).entity_N) == 1
    hood = pair_scores.around_both(kg.edges, ends, 8)
    assert set(ends.tolist()) <= set(hood.entity_N.tolist())
    few = small_gamma.predict(kg, head="Ann", tail="Bob", local=8, **ALL)
    many = small_gamma.predict(kg, head="Ann", tail="Bob", local=16, **ALL)
    assert [p.name for p in few] == [p.name for p in many] and len(few) == kg.num_relations


def test_evaluation_asks_for_relations_as_predict_does(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    head, relation, tail = (int(part[5]) for part in town.triples.T)
    others = [row for at, row in enumerate(town.triples.tolist()) if at != 5]
    asked = np.array([[head, relation, tail]])
    split = Split(np.array(others), asked, np.array(others), town.entities, town.relations)
    ranker = RelationRanker(small_gamma, split, AnswerOptions(local=30))
    [batch] = RelationPlan.build(split).batches()
    score_TR = ranker._near_both(head, np.array([tail]))
    names = {"head": split.entities[head], "tail": split.entities[tail]}
    found = small_gamma.predict(ranker.kg, **names, local=30, **ALL)
    assert len(found) == town.num_relations
    for one in found:
        assert float(score_TR[0, town.relation_id(one.name)]) == one.score
    counts = RivalCounts.empty(1)
    ranker.rank(batch, counts)
    known = {r for h, r, t in others if (h, t) == (head, tail)}
    better = [p for p in found if p.score > float(score_TR[0, relation]) and town.relation_id(p.name) not in known]
    assert counts.fair_rank()[0] == 1 + len(better)


def test_relations_that_contradict_the_rules_are_not_asked(
    family: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    score_batches = small_gamma.score_batches

    def watched(kg: KnowledgeGraph, source_Q: torch.Tensor, relation_Q: torch.Tensor, *rest: object, **how: object):  # type: ignore[no-untyped-def]
        asked.extend(relation_Q.tolist())
        return score_batches(kg, source_Q, relation_Q, *rest, **how)

    monkeypatch.setattr(small_gamma, "score_batches", watched)
    rules = rules_of(family)
    monkeypatch.setattr(rules, "why_not", lambda source, relation, answer: "no" if relation == 1 else None)
    found = small_gamma.predict(family, head="Ann", tail="Bob", include_known=True)
    assert family.relations[1] not in {p.name for p in found} and found
    assert sorted(asked) == [r for r in range(family.num_types) if r % family.num_relations != 1]
    monkeypatch.setattr(rules, "why_not", lambda source, relation, answer: "no")
    assert not small_gamma.predict(family, head="Ann", tail="Bob", include_known=True)


@pytest.mark.parametrize("local", ["off", 30])
def test_fitted_to_a_graph_a_relation_has_the_probability_that_its_fact_has_elsewhere(
    town: KnowledgeGraph, small_gamma: Gamma, local: str | int
) -> None:
    small_gamma.calibrate(town, local=local, max_hidden=20)
    names = town.entities[7], town.entities[8]
    for one in small_gamma.predict(town, head=names[0], tail=names[1], local=local, top_k=3):
        fact = 7, town.relation_id(one.name), 8
        assert one.probability == small_gamma.fact_probability(town, *fact, AnswerOptions(local=local))
