"""Calibration: a monotone map from shares to frequencies, fitted to facts hidden from the user's own graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.complete import complete
from gamma_kg.demo import demo_split
from gamma_kg.errors import DataError
from gamma_kg.nn.answers import WholeAnswers
from gamma_kg.nn.checkpoint import import_ultra
from gamma_kg.nn.model import Scores
from gamma_kg.predicting import pace
from gamma_kg.predicting.calibrate import calibrate
from gamma_kg.predicting.calibration import Calibration, MonotoneMap
from gamma_kg.predicting.odds import End, FactOdds, from_log_odds, log_odds
from gamma_kg.predicting.reliability import JudgedProposals, expected_calibration_error, fit_calibration
from gamma_kg.predicting.score_batch import ScoreBatch


def test_calibration_error_is_zero_for_honest_probabilities_and_the_gap_otherwise() -> None:
    truth = np.array([True, False] * 50)
    assert expected_calibration_error(np.full(100, 0.5), truth) == pytest.approx(0.0)
    assert expected_calibration_error(np.full(100, 0.9), truth) == pytest.approx(0.4)
    # Over- and underconfidence in different bins do not cancel out.
    assert expected_calibration_error(np.repeat([0.75, 0.25], 50), truth) == pytest.approx(0.25)


def test_the_map_rises_and_meets_the_frequencies() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-4, 4, 4000)
    y = (rng.random(4000) < from_log_odds(x) ** 2).astype(float)
    fitted = MonotoneMap.fit(x, y)
    assert (np.diff(fitted.x) > 0).all() and (np.diff(fitted.y) > 0).all()
    for at in (-2.0, 0.0, 2.0):
        assert fitted(np.array([at]))[0] == pytest.approx(from_log_odds(np.array([at]))[0] ** 2, abs=0.08)


def test_a_fit_that_does_worse_than_the_plain_odds_is_not_used() -> None:
    """Of few hidden facts a map learns their luck: seventeen made the pizza ontology's probabilities worse."""
    rng = np.random.default_rng(3)
    worse = 0
    for size in (30, 30, 30, 4000):
        odds = rng.uniform(-4, 1, size)
        rows = JudgedProposals(
            np.arange(size), np.zeros(size, dtype=np.int64), odds, rng.random(size) < from_log_odds(odds), np.ones(size)
        )
        found = fit_calibration(rows, rng)
        assert found.error_after <= found.error_before
        if found.error_after == found.error_before:
            worse += 1
            assert found.probability(0, odds) == pytest.approx(from_log_odds(odds), abs=1e-4)
    assert worse, "honest odds can't be bettered by a map of fifteen"
    overconfident = JudgedProposals(rows.query, rows.relation, odds + 3, rows.is_true, rows.weight)
    found = fit_calibration(overconfident, rng)
    assert found.error_after < found.error_before / 3


def test_shares_are_among_candidates_and_the_known_count_as_if_they_were_not_known() -> None:
    scores = WholeAnswers(torch.tensor([1.0, 1.0, 1.0, 9.0]), None)
    without = torch.tensor([2, 3])
    end = End(0, 0, scores, without[:1], without, scores.log_total(without), 0.5, 0.8)
    shares = np.exp(end.log_shares(torch.arange(4)))
    assert shares[:3].tolist() == pytest.approx([1 / 2, 1 / 2, 1 / 3])
    assert shares[3] == pytest.approx(np.exp(9) / (np.exp(9) + 2 * np.exp(1)))
    # What is known is worth what the query would be worth without it.
    assert end.log_odds(torch.tensor([0, 2])) == pytest.approx(log_odds(np.array([0.5 / 2, 0.8 / 3])))


def ring(num: int) -> KnowledgeGraph:
    names = [f"n{i}" for i in range(num)]
    return KnowledgeGraph.from_triples([(names[i], "next", names[(i + 1) % num]) for i in range(num)])


def overconfident(kg: KnowledgeGraph, source_Q: Tensor, relation_Q: Tensor) -> Iterator[ScoreBatch]:
    """Puts nearly all weight on one answer, the same from both ends, which is right for every other fact."""
    forward = torch.arange(kg.num_entities)
    forward = forward + torch.tensor([1, 3, 1, -1])[forward % 4]
    believed = torch.stack([forward % kg.num_entities, (forward % kg.num_entities).argsort()])
    score_QN = torch.zeros(len(source_Q), kg.num_entities)
    score_QN[torch.arange(len(source_Q)), believed[(relation_Q >= kg.num_relations).long(), source_Q]] = 20.0
    order = torch.arange(len(source_Q))
    yield ScoreBatch(order, order, Scores(score_QN, None))


def test_an_overconfident_model_is_brought_down_to_its_frequency() -> None:
    kg = ring(1000)
    found = calibrate(overconfident, kg, share=0.3, max_hidden=300, rules=False)
    assert found.error_before > 0.05
    assert found.error_after < 0.9 * found.error_before
    assert set(found.by_relation) == {0}
    assert "expected calibration error" in str(found)
    assert sum(row.count for row in found.reliability) > 100
    assert all(abs(row.said - row.held) < 0.25 for row in found.reliability if row.count > 40)


class Clock:
    """Every look at it is a second later."""

    now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


def test_a_budget_that_is_used_up_leaves_fewer_queries_but_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    kg = ring(400)
    options = {"share": 0.3, "max_hidden": 200, "rules": False}
    whole = calibrate(overconfident, kg, **options)
    monkeypatch.setattr(pace, "time", Clock())
    part = calibrate(overconfident, kg, **options, budget_seconds=7.5, progress=lambda *at: seen.append(at))
    assert 16 <= part.num_queries < whole.num_queries
    assert seen[0] == (0, seen[0][1]) and [at for at, _ in seen] == sorted(at for at, _ in seen)


@pytest.mark.parametrize("seconds", [0, 1.5])
def test_a_budget_is_not_overrun_by_queries_that_there_is_no_time_for(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    asked = []

    def counted(kg: KnowledgeGraph, source_Q: Tensor, relation_Q: Tensor) -> Iterator[ScoreBatch]:
        asked.append(len(source_Q))
        return overconfident(kg, source_Q, relation_Q)

    monkeypatch.setattr(pace, "time", Clock())
    with pytest.raises(DataError, match="too few to fit probabilities by; give it more time"):
        calibrate(counted, ring(400), share=0.3, max_hidden=200, rules=False, budget_seconds=seconds)
    assert len(asked) == (2 if seconds else 0)  # one query, and the other ends of its answers


def test_a_budget_too_short_to_meet_a_hidden_fact_fits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(kg: KnowledgeGraph, source_Q: Tensor, relation_Q: Tensor) -> Iterator[ScoreBatch]:
        order = torch.arange(len(source_Q))
        far_QN = (torch.arange(kg.num_entities) - source_Q[:, None] - 200).abs().mul(-1)  # hidden answers are near
        yield ScoreBatch(order, order, Scores(far_QN.float(), None))

    monkeypatch.setattr(pace, "time", Clock())
    with pytest.raises(DataError, match="none of the hidden facts came up"):
        calibrate(wrong, ring(400), share=0.3, max_hidden=200, rules=False, budget_seconds=7.5)


def test_one_fact_has_one_probability_wherever_it_is_asked_for() -> None:
    split = demo_split()
    kg = KnowledgeGraph(split.graph, split.entities, split.relations)
    gamma = Gamma.from_pretrained()
    gamma.calibrate(kg, max_hidden=20)
    facts = complete(gamma, kg, relations=["capital of"], top=2).facts
    assert facts
    for fact in facts:
        name = (fact.head, fact.relation, fact.tail)
        everything = {"top_k": 30, "include_known": True}
        tails = gamma.predict(kg, head=fact.head, relation=fact.relation, **everything)
        heads = gamma.predict(kg, relation=fact.relation, tail=fact.tail, **everything)
        relations = gamma.predict(kg, head=fact.head, tail=fact.tail, **everything)
        said = [p.probability for p in (*tails, *heads, *relations) if (p.head, p.relation, p.tail) == name]
        explained = gamma.explain(kg, head=name[0], relation=name[1], tail=name[2], num_facts=0).probability
        assert len(said) == 3
        assert [*said, explained] == pytest.approx([fact.probability] * 4, rel=1e-5)
        assert [p.probability for p in tails] == sorted((p.probability for p in tails), reverse=True)


def test_what_was_fitted_is_kept_for_the_next_program(small_gamma: Gamma, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GAMMA_CACHE", str(tmp_path))
    kg = ring(120)
    found = Gamma(small_gamma.model).calibrate(kg, share=0.3)
    again = Gamma(small_gamma.model).calibration(ring(120))
    assert again is not None and again.digest() == found.digest()
    assert Calibration.from_dict(found.to_dict()).to_dict() == found.to_dict()
    # Another graph, another use of rules, another model: nothing is taken over.
    assert Gamma(small_gamma.model).calibration(ring(121)) is None
    assert Gamma(small_gamma.model).calibration(kg, rules=False) is None
    assert Gamma.from_config(small_gamma.config, seed=5).calibration(kg) is None
    for file in tmp_path.rglob("*.json"):
        file.write_text("{damaged")
    assert Gamma(small_gamma.model).calibration(ring(120)) is None


def test_where_nothing_can_be_written_it_is_kept_in_memory(small_gamma: Gamma, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GAMMA_CACHE", str(tmp_path / "file"))
    kg, gamma = ring(120), Gamma(small_gamma.model)
    assert gamma.calibrate(kg, share=0.3) is gamma.calibration(kg)


def test_odds_do_not_depend_on_the_end(small_gamma: Gamma) -> None:
    kg = ring(40)
    odds = FactOdds(small_gamma.score_batches, kg, rules=False)
    (head,), (tail,) = (list(odds.ask(np.array([query]))) for query in ([3, 0], [9, 1]))
    assert head.log_odds(torch.tensor([9])) + tail.log_odds(torch.tensor([3])) == pytest.approx(
        tail.log_odds(torch.tensor([3])) + head.log_odds(torch.tensor([9]))
    )
    assert odds.other_ends(np.array([[3, 0, 9]])).keys() == {(9, 1)}


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
