from __future__ import annotations

import numpy as np
import pytest

from gamma_kg.data.benchmark import Split
from gamma_kg.data.vocabulary import Vocabulary
from gamma_kg.evaluation.metrics import bootstrap_interval
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.training import judgement


class Ranked:
    """Rival counts that were fixed beforehand."""

    def __init__(self, ranks: np.ndarray) -> None:
        self.ranks = ranks

    def fair_rank(self) -> np.ndarray:
        return self.ranks


def test_the_interval_lets_one_in_twenty_pass_that_is_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two directions of a fact are one draw; the lower end decides at a twentieth."""
    names = Vocabulary([f"e{i}" for i in range(40)])
    facts = np.array([(i, 0, 39 - i) for i in range(20)])
    split = Split(facts, facts, facts, names, Vocabulary(["r"]))
    rng = np.random.default_rng(0)
    old, new = rng.integers(1, 9, 40).astype(float), rng.integers(1, 7, 40).astype(float)
    given = iter((Ranked(old), Ranked(new)))
    monkeypatch.setattr(judgement, "rank_split", lambda *_: next(given))
    model = Gamma.from_config(GammaConfig(dim=8, num_layers=1, attention_dim=8)).model
    verdict = judgement.judge(model, model, split)
    gains = ((1 / new - 1 / old)[:20] + (1 / new - 1 / old)[20:]) / 2
    assert (verdict.low, verdict.high) == bootstrap_interval(gains.tolist(), level=0.9)
    assert verdict.facts == 20 and verdict.gain == pytest.approx(gains.mean())
