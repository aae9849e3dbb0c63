"""How far a completion looks for candidates that fit."""

from __future__ import annotations

import numpy as np
import torch

from gamma_kg.complete.proposals import best_fitting
from gamma_kg.nn.answers import WholeAnswers

NOBODY = torch.empty(0, dtype=torch.long)


class Looked(WholeAnswers):
    """Remembers how many candidates were asked for."""

    def best(self, count: int, without: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        asked.append(count)
        return super().best(count, without)


asked: list[int] = []


def test_it_looks_on_until_enough_fit_and_no_further_than_is_worth_it() -> None:
    answers = Looked(torch.linspace(5, -5, 1000), None)

    def are_fit(entity: np.ndarray) -> np.ndarray:
        return np.asarray(entity >= 200)

    asked.clear()
    assert best_fitting(answers, are_fit, NOBODY, 3).tolist() == [200, 201, 202]
    assert asked == [12, 48, 192, 768]
    # Everyone from 100 on is not worth looking at, and none before them fits.
    asked.clear()
    assert best_fitting(answers, are_fit, NOBODY, 3, lambda worst: int(worst[0]) < 100).tolist() == []
    assert asked == [12, 48, 192]
