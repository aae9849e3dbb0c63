"""Calibration: a monotone map from shares to frequencies, fitted to facts hidden from the user's own graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.errors import DataError
from gamma_kg.nn.checkpoint import import_ultra
from gamma_kg.nn.model import Scores
from gamma_kg.predicting.calibration import MonotoneMap, calibrate, expected_calibration_error, log_shares
from gamma_kg.predicting.inference import ScoreBatch


def test_calibration_error_is_zero_for_honest_probabilities_and_the_gap_otherwise() -> None:
    truth = np.array([True, False] * 50)
    assert expected_calibration_error(np.full(100, 0.5), truth) == pytest.approx(0.0)
    assert expected_calibration_error(np.full(100, 0.9), truth) == pytest.approx(0.4)
    # Over- and underconfidence in different bins do not cancel out.
    assert expected_calibration_error(np.repeat([0.75, 0.25], 50), truth) == pytest.approx(0.25)


def test_the_map_rises_and_meets_the_frequencies() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-4, 0, 4000)
    y = (rng.random(4000) < np.exp(2 * x)).astype(float)
    fitted = MonotoneMap.fit(x, y)
    assert (np.diff(fitted.x) > 0).all() and (np.diff(fitted.y) > 0).all()
    for at in (-2.0, -1.0, -0.3):
        assert fitted(np.array([at]))[0] == pytest.approx(np.exp(2 * at), abs=0.08)


def test_known_candidates_have_no_share() -> None:
    share = log_shares(torch.tensor([[1.0, 1.0, 9.0]]), torch.tensor([[False, False, True]])).exp()
    assert share[0].tolist() == pytest.approx([0.5, 0.5, 0.0])


def ring(num: int) -> KnowledgeGraph:
    names = [f"n{i}" for i in range(num)]
    return KnowledgeGraph.from_triples([(names[i], "next", names[(i + 1) % num]) for i in range(num)])


def overconfident(kg: KnowledgeGraph, source_Q: Tensor, relation_Q: Tensor) -> Iterator[ScoreBatch]:
    """Puts nearly all weight on one answer, which is right for every other query."""
    step = torch.where(relation_Q < kg.num_relations, 1, -1)
    score_QN = torch.zeros(len(source_Q), kg.num_entities)
    wrong = source_Q % 2
    score_QN[torch.arange(len(source_Q)), (source_Q + step + 7 * wrong) % kg.num_entities] = 20.0
    order = torch.arange(len(source_Q))
    yield ScoreBatch(order, order, Scores(score_QN, None))


def test_an_overconfident_model_is_brought_down_to_its_frequency() -> None:
    kg = ring(1000)
    found = calibrate(overconfident, kg, share=0.3, max_hidden=300)
    assert found.num_hidden == 300
    assert found.error_before > 0.02
    assert found.error_after < found.error_before / 4
    assert found.probability(0, np.array([0.0]))[0] == pytest.approx(0.5, abs=0.15)
    assert set(found.by_relation) == {0, 1}
    assert "expected calibration error" in str(found)


def test_predictions_carry_calibrated_probabilities_in_the_same_order(small_gamma: Gamma) -> None:
    kg = ring(120)
    gamma = Gamma(small_gamma.model)
    before = gamma.predict(kg, head="n5", relation="next", top_k=5)
    calibration = gamma.calibrate(kg, share=0.3)
    after = gamma.predict(kg, head="n5", relation="next", top_k=5)
    assert [p.name for p in before] == [p.name for p in after]
    assert [p.score for p in before] == [p.score for p in after]
    shares = np.log([p.probability for p in before])
    assert [p.probability for p in after] == pytest.approx(calibration.probability(0, shares).tolist())
    probabilities = [p.probability for p in after]
    assert probabilities == sorted(probabilities, reverse=True)
    # Another graph keeps its own.
    assert gamma.calibration(ring(30)) is None


def test_the_same_seed_hides_the_same_facts(small_gamma: Gamma) -> None:
    kg = ring(60)
    first, second = (small_gamma.calibrate(kg, share=0.5, seed=4) for _ in range(2))
    assert first.whole.y.tolist() == second.whole.y.tolist()
    assert first.error_after == second.error_after


@pytest.mark.parametrize("options", [{"share": 0}, {"share": 1.0}, {"max_hidden": 0}, {"share": 0.01}])
def test_what_can_not_be_calibrated_is_refused(small_gamma: Gamma, options: dict[str, float]) -> None:
    with pytest.raises(DataError):
        small_gamma.calibrate(ring(60), **options)


@pytest.mark.parametrize("name", ["wn18rr-v1", "fb15k237-v1"])
def test_calibration_lowers_the_error_on_benchmark_graphs(shared: Path, name: str) -> None:
    gamma = Gamma.from_checkpoint(import_ultra(shared / "parity" / "ultra_3g.pth"))
    kg = KnowledgeGraph.from_file(shared / "datasets" / name / "inference.txt")
    # With far fewer hidden facts the judgement itself is noise: plain shares are already close.
    found = gamma.calibrate(kg, max_hidden=200)
    assert found.error_after < found.error_before
    assert found.error_after < 0.03
