"""Local answers whose neighbourhoods keep facts on their rim."""

import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.growth import grow
from gamma_kg.predicting import switch
from gamma_kg.predicting.background import BackgroundCache
from gamma_kg.predicting.inference import RelationCache, relation_states


@pytest.fixture(autouse=True)
def rim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "RIM_SHARE", 2.0)


def test_only_what_came_in_has_scores_of_its_own(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    hood = grow(town.edges, torch.tensor([7]), 20, rim=switch.rim_of(20))
    inside, beyond = hood.entity_N[hood.is_inside_N], hood.entity_N[~hood.is_inside_N]
    assert len(beyond) > 3
    relation, cache = torch.tensor([4]), RelationCache()
    relations = relation_states(small_gamma.model, town, relation, cache, 1 << 30)
    start = Starts.single(hood.places(torch.tensor([0]), torch.tensor([7])))
    with torch.no_grad():
        own = small_gamma.model.score_entities(hood.edges, relations, start, relation).score_BC[0]
    background = BackgroundCache().of(small_gamma.model, town, 4, cache, 1 << 30)
    found = small_gamma.scores(town, [7], [4], local=20)[0]
    torch.testing.assert_close(found[inside], own[: len(inside)], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[beyond], background.at(beyond), rtol=0, atol=1e-5)


def test_facts_on_the_rim_change_the_scores_inside(
    town: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = grow(town.edges, torch.tensor([7]), 20).entity_N
    found = small_gamma.scores(town, [7], [4], local=20)[0][inside]
    monkeypatch.setattr(switch, "RIM_SHARE", 0.0)
    assert (small_gamma.scores(town, [7], [4], local=20)[0][inside] - found).abs().max() > 1e-3


def test_many_queries_at_once_get_the_answers_that_each_gets_alone(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    source, relation = torch.tensor([5, 1, 30, 65]), torch.tensor([0, 3, 5, 1])  # the last has no fact
    together = small_gamma.scores(town, source, relation, local=30)
    for q in range(4):
        alone = small_gamma.scores(town, source[q : q + 1], relation[q : q + 1], local=30)[0]
        torch.testing.assert_close(together[q], alone, rtol=0, atol=1e-6)


def test_an_explanation_is_that_of_the_answer(town: KnowledgeGraph, small_gamma: Gamma) -> None:
    hood = grow(town.edges, torch.tensor([7]), 20, rim=switch.rim_of(20))
    names = [town.entities[e] for e in hood.entity_N.tolist()]
    for tail, is_outside in ((names[2], False), (names[-1], True)):
        score = float(small_gamma.scores(town, [7], [1], local=20)[0][town.entity_id(tail)])
        found = small_gamma.explain(town, head="e7", relation="r1", tail=tail, local=20, rules=False)
        known = bool((town.answers(7, 1) == town.entity_id(tail)).any())
        assert found.is_outside is is_outside
        assert known or found.score == pytest.approx(score, abs=1e-4)


def test_results_with_and_without_a_rim_are_not_taken_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with_rim = switch.rules()
    monkeypatch.setattr(switch, "RIM_SHARE", 0.0)
    assert switch.rules() != with_rim
