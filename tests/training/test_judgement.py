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


@pytest.mark.parametrize(("few", "is_better"), [(False, False), (True, True)])
def test_one_kind_of_facts_does_not_pay_for_the_other(
    monkeypatch: pytest.MonkeyPatch, few: bool, is_better: bool
) -> None:
    """Facts with a twin gain much, facts without one lose: kept only where too few of these are there to say so."""
    names = Vocabulary([f"e{i}" for i in range(200)])
    facts = np.array([(i, 0, 199 - i) for i in range(100)])
    alone = 10 if few else 30
    split = Split(facts[alone:][:, [2, 1, 0]], facts, facts, names, Vocabulary(["r"]))
    old = np.full(200, 4.0)
    new = np.tile(np.where(np.arange(100) < alone, 5.0, 1.0), 2)
    given = iter((Ranked(old), Ranked(new)))
    monkeypatch.setattr(judgement, "rank_split", lambda *_: next(given))
    model = Gamma.from_config(GammaConfig(dim=8, num_layers=1, attention_dim=8)).model
    verdict = judgement.judge(model, model, split)
    assert verdict.low > 0 and verdict.is_better == is_better
    twinned, lone = verdict.kinds["facts with a twin"], verdict.kinds["facts without a twin"]
    assert (twinned.facts, lone.facts) == (100 - alone, alone)
    assert twinned.gain == pytest.approx(0.75) and lone.gain == pytest.approx(-0.05)
    assert few or "but facts without a twin lose (-0.0500): the old weights stay" in str(verdict)
