from __future__ import annotations

import math

import pytest
import torch

from gamma_kg.training.loss import bce_loss, branch_entropy, softmax_loss

SCORES = torch.tensor([[2.0, 1.0, 0.0, -1.0, 9.0]])
RIGHT = torch.tensor([[True, True, False, False, False]])
WRONG = torch.tensor([[False, False, True, True, False]])


def test_softmax_sets_each_right_answer_against_the_wrong_ones_only() -> None:
    rivals = math.exp(0.0) + math.exp(-1.0)
    expected = -sum(math.log(math.exp(s) / (math.exp(s) + rivals)) for s in (2.0, 1.0)) / 2
    assert softmax_loss(SCORES, RIGHT, WRONG).item() == pytest.approx(expected)


def test_bce_weighs_wrong_answers_by_how_much_they_are_believed() -> None:
    def cost(score: float, is_right: bool) -> float:
        return math.log1p(math.exp(-score if is_right else score))

    weight = math.exp(0.0) / (math.exp(0.0) + math.exp(-1.0))
    wrong = weight * cost(0.0, False) + (1 - weight) * cost(-1.0, False)
    expected = ((cost(2.0, True) + cost(1.0, True)) / 2 + wrong) / 2
    assert bce_loss(SCORES, RIGHT, WRONG).item() == pytest.approx(expected)
    equal = ((cost(2.0, True) + cost(1.0, True)) / 2 + (cost(0.0, False) + cost(-1.0, False)) / 2) / 2
    assert bce_loss(SCORES, RIGHT, WRONG, temperature=0).item() == pytest.approx(equal)


def test_adversarial_weights_carry_no_gradient() -> None:
    scores = SCORES.clone().requires_grad_()
    bce_loss(scores, RIGHT, WRONG).backward()
    weight = torch.softmax(torch.tensor([0.0, -1.0]), 0)
    assert scores.grad is not None
    assert torch.allclose(scores.grad[0, 2:4], weight * torch.sigmoid(torch.tensor([0.0, -1.0])) / 2)
    assert scores.grad[0, 4] == 0


@pytest.mark.parametrize("loss", [bce_loss, softmax_loss])
def test_a_query_without_wrong_answers_gives_a_finite_loss_and_gradient(loss) -> None:
    scores = SCORES.clone().requires_grad_()
    value = loss(scores, RIGHT, torch.zeros_like(WRONG))
    value.backward()
    assert value.isfinite()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_entropy_is_largest_for_equal_weights_and_skips_what_does_not_count() -> None:
    weights = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]])
    assert branch_entropy(weights, torch.tensor([[True, False]])).item() == pytest.approx(math.log(2))
    assert branch_entropy(weights, torch.tensor([[True, True]])).item() == pytest.approx(math.log(2) / 2)
