"""Steps on a large graph: each is computed around the best of the set it starts from."""

from typing import Any

import numpy as np
import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph, ask, entity
from gamma_kg.graph.starts import Starts
from gamma_kg.logic import predicted
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import Entity
from gamma_kg.logic.predicted import ModelProjection, starts_of
from gamma_kg.predicting import switch
from gamma_kg.predicting.switch import Local


@pytest.fixture
def kg() -> KnowledgeGraph:
    rng = np.random.default_rng(1)
    triples = np.stack([rng.integers(0, n, 400) for n in (60, 4, 60)], axis=1)
    return KnowledgeGraph(triples, [f"e{i}" for i in range(60)], list("abcd"))


def test_a_neighbourhood_that_holds_the_whole_graph_gives_the_same_degrees(
    kg: KnowledgeGraph, small_gamma: Gamma
) -> None:
    formula = (Entity(3).along(1) & ~Entity(5).along(2)).along(4)
    whole, local = (
        execute([formula], ModelProjection(small_gamma, kg, local=local))[formula] for local in ("off", 10_000)
    )
    torch.testing.assert_close(local, whole, atol=1e-5, rtol=1e-4)


def test_only_the_best_of_a_set_are_gone_on_from(kg: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = starts_of([torch.tensor([0.1, 0.9, 0.3, 0.0]), 2], threshold=0.0, most=2)
    assert starts.node_S.tolist() == [1, 2, 2] and starts.offset_B1.tolist() == [0, 2, 3]
    few = starts_of([torch.tensor([0.0, 0.9, 0.0, 0.0])], threshold=0.0, most=2)
    assert few.node_S.tolist() == [1]


def test_a_step_from_a_set_sees_more_of_a_graph_than_one_from_an_entity(
    kg: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small, middling and large, by the work of a layer."""
    work = 2 * kg.num_triples + switch.ENTITY_WORK * kg.num_entities

    def budgets(local: Local = "auto") -> tuple[int | None, int | None]:
        projector = ModelProjection(small_gamma, kg, local=local)
        return projector.local, projector.local_from_sets

    assert budgets() == (None, None)
    monkeypatch.setattr(predicted, "CHEAP", work - 1)
    monkeypatch.setattr(predicted, "CHEAP_FROM_SETS", work)
    assert budgets() == (switch.LEAST_TRIPLES, None)
    monkeypatch.setattr(predicted, "CHEAP_FROM_SETS", work - 1)
    assert budgets() == (switch.LEAST_TRIPLES, 3 * switch.LEAST_TRIPLES)
    assert budgets("off") == (None, None) and budgets(70) == (70, 70)
    asked = []

    def project(kg: KnowledgeGraph, starts: Starts, *given: Any, **options: Any) -> Any:
        asked.append((len(starts.node_S), given[-1]))
        return Gamma.score_batches(small_gamma, kg, starts, *given, **options)

    monkeypatch.setattr(small_gamma, "score_batches", project)
    formula = Entity(3).along(1, 2)
    execute([formula], ModelProjection(small_gamma, kg))
    assert asked == [(1, switch.LEAST_TRIPLES), (60, 3 * switch.LEAST_TRIPLES)]


def test_a_small_neighbourhood_still_answers_with_what_follows(
    kg: KnowledgeGraph, small_gamma: Gamma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predicted, "LOCAL_STARTS", 3)
    answers = ask(kg, entity("e3").along("a").called("y").along("b"), small_gamma, local=20, top_k=60)
    following = [answer for answer in answers if answer.follows]
    assert following and all(answer.probability == 1 for answer in following)
    assert all(step.known for answer in following for step in answer.steps)
