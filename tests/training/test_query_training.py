"""The step of logical queries is trained through whole queries."""

import copy

import numpy as np
import pytest
import torch

from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.logic.execute import execute
from gamma_kg.logic.predicted import ModelProjection, StepOptions
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.model import GammaModel
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.training.logical_queries import QueryTraining, TrainedSteps, draw, query_loss, train_queries

SMALL = QueryTraining(entities=(20, 30), queries_per_draw=6, steps=3, minutes=5, learning_rate=3e-3)


@pytest.fixture
def graph() -> TrainingGraph:
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(0, 30, 200), rng.integers(0, 3, 200), rng.integers(0, 30, 200)], axis=1)
    return TrainingGraph.build("random", triples, 30, 3)


@pytest.fixture
def model(small_config: GammaConfig) -> GammaModel:
    torch.manual_seed(1)
    return GammaModel(small_config)


def test_training_executes_what_answering_executes(graph: TrainingGraph, model: GammaModel) -> None:
    kg, queries = draw([graph], SMALL, np.random.default_rng(4))
    options = StepOptions(threshold=0.05)
    formulas = [query.formula for query in queries]
    trained = execute(formulas, TrainedSteps(model.eval(), kg, options))
    answered = execute(formulas, ModelProjection(Gamma(model), kg, options))
    for formula in formulas:
        torch.testing.assert_close(trained[formula].detach(), answered[formula], atol=1e-5, rtol=1e-4)


def test_hard_answers_of_a_draw_need_hidden_facts(graph: TrainingGraph) -> None:
    kg, queries = draw([graph], SMALL, np.random.default_rng(4))
    assert queries and all(len(query.hard) for query in queries)
    assert kg.num_triples < graph.num_triples


def test_the_gradient_reaches_the_first_of_two_steps(graph: TrainingGraph, model: GammaModel) -> None:
    kg, queries = draw([graph], SMALL, np.random.default_rng(4))
    chain = next(query for query in queries if query.shape in ("2p", "3p"))
    seen: list[torch.Tensor] = []

    class Watched(TrainedSteps):
        def project(self, operands, relations):  # type: ignore[no-untyped-def]
            found = super().project(operands, relations)
            found.retain_grad()
            seen.append(found)
            return found

    query_loss([chain], Watched(model, kg, StepOptions(facts=False))).backward()
    assert len(seen) >= 2
    assert all(step.grad is not None and float(step.grad.abs().sum()) > 0 for step in seen)


def test_steps_against_the_gradient_lower_the_loss_of_a_draw(graph: TrainingGraph, model: GammaModel) -> None:
    kg, queries = draw([graph], SMALL, np.random.default_rng(4))
    steps = TrainedSteps(model.eval(), kg, StepOptions(threshold=0.05))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss = query_loss(queries, steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.03


def test_training_is_the_same_for_the_same_seed(graph: TrainingGraph, model: GammaModel) -> None:
    other, options = copy.deepcopy(model), StepOptions(threshold=0.05)
    losses: list[float] = []
    averages = [
        train_queries(one, [graph], options, SMALL, lambda step, loss, average: losses.append(loss))
        for one in (model, other)
    ]
    assert len(losses) == 6 and losses[:3] == pytest.approx(losses[3:], rel=1e-5)
    for one, two in zip(*(average.parameters() for average in averages), strict=True):
        torch.testing.assert_close(one, two, atol=1e-3, rtol=0)  # the order of sums may differ
