"""Losses and objective agree with a slow reference; a step from several batches is the mean of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import slow_reference as slow
from gamma_kg.bench.training import random_batch
from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.batch import Batch
from gamma_kg.training.config import Phase, TrainConfig
from gamma_kg.training.draws import GraphDrawer
from gamma_kg.training.loop import Trainer
from gamma_kg.training.loss import bce_loss, branch_entropy, likely_mix, softmax_loss, teacher_loss
from gamma_kg.training.objective import Teacher, batch_loss
from gamma_kg.training.run_folder import RunFolder


def candidates() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    right = torch.rand(6, 9) < 0.3
    right[:, 0] = True
    return 3 * torch.randn(6, 9, dtype=torch.float64), right, ~right & (torch.rand(6, 9) < 0.8)


@pytest.mark.parametrize("tau", [0.25, 1.0, 4.0])
def test_bce_with_its_temperature_is_that_of_the_slow_reference(tau: float) -> None:
    score, right, wrong = candidates()
    wanted = [slow.bce(*row, tau) for row in zip(score.tolist(), right.tolist(), wrong.tolist(), strict=True)]
    assert bce_loss(score, right, wrong, tau).item() == pytest.approx(slow.mean(wanted), rel=1e-9)


def test_softmax_loss_is_that_of_the_slow_reference() -> None:
    score, right, wrong = candidates()
    wanted = [slow.cross_entropy(*row) for row in zip(score.tolist(), right.tolist(), wrong.tolist(), strict=True)]
    assert softmax_loss(score, right, wrong).item() == pytest.approx(slow.mean(wanted), rel=1e-9)


def test_distance_to_a_teacher_is_that_of_the_slow_reference() -> None:
    score, right, wrong = candidates()
    taught = 2 * torch.randn(6, 9, dtype=torch.float64)
    rows = zip(score.tolist(), taught.tolist(), (right | wrong).tolist(), strict=True)
    wanted = slow.mean([slow.divergence(*row) for row in rows])
    assert teacher_loss(score, taught, right | wrong).item() == pytest.approx(wanted, rel=1e-9)
    assert teacher_loss(taught, taught, right | wrong).item() == pytest.approx(0, abs=1e-12)
    assert teacher_loss(score, taught, torch.zeros_like(right)).item() == 0


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_objective_is_in_part_the_distance_to_the_teacher(share: float) -> None:
    torch.manual_seed(3)
    batch = random_batch(30, 120, 4, 5, 8)
    model, teacher = (GammaModel(GammaConfig(dim=8, num_layers=2, attention_dim=6)) for _ in range(2))
    config = TrainConfig.parse({"loss": "softmax", "entropy_weight": 0.0, "teacher_share": share})
    with torch.no_grad():
        starts = Starts.single(batch.source_B)
        own, taught = (
            one(batch.edges, batch.relation_graph, starts, batch.relation_B, batch.candidate_BC).score_BC
            for one in (model, teacher)
        )
    rows = zip(own.tolist(), taught.tolist(), (batch.right_BC | batch.wrong_BC).tolist(), strict=True)
    distance = slow.mean([slow.divergence(*row) for row in rows])
    alone, _ = batch_loss(model, batch, config)
    together, _ = batch_loss(model, batch, config, [Teacher(teacher)])
    assert together.item() == pytest.approx((1 - share) * alone.item() + share * distance, rel=1e-4, abs=1e-6)
    together.backward()
    assert all(weight.grad is None for weight in teacher.parameters())


def test_likely_teachers_count_by_what_they_give_the_right_answers() -> None:
    _, right, wrong = candidates()
    taught = 2 * torch.randn(3, 6, 9, dtype=torch.float64)
    mixed = likely_mix(taught, right, wrong).exp()
    for b in range(6):
        counted = [c for c in range(9) if right[b, c] or wrong[b, c]]
        shares = []
        for t in range(3):
            powers = {c: math.exp(taught[t, b, c]) for c in counted}
            shares.append({c: power / sum(powers.values()) for c, power in powers.items()})
        answers = [c for c in counted if right[b, c]]
        # Several right answers count by the geometric mean of their shares.
        trust = [math.prod(share[c] for c in answers) ** (1 / len(answers)) for share in shares]
        for c in counted:
            wanted = sum(w * share[c] for w, share in zip(trust, shares, strict=True)) / sum(trust)
            assert mixed[b, c].item() == pytest.approx(wanted, rel=1e-9)


def test_the_objective_asks_likely_teachers_where_it_is_told_to() -> None:
    torch.manual_seed(3)
    batch = random_batch(30, 120, 4, 5, 8)
    model, *others = (GammaModel(GammaConfig(dim=8, num_layers=2, attention_dim=6)) for _ in range(3))
    teachers = [Teacher(other) for other in others]
    taught = torch.stack([teacher.scores(batch) for teacher in teachers])
    own = Teacher(model).scores(batch)
    for mix, wanted in (("mean", taught.mean(0)), ("likely", likely_mix(taught, batch.right_BC, batch.wrong_BC))):
        options = {"loss": "softmax", "entropy_weight": 0.0, "teacher_share": 1.0, "teacher_mix": mix}
        found, _ = batch_loss(model, batch, TrainConfig.parse(options), teachers)
        distance = teacher_loss(own, wanted, batch.right_BC | batch.wrong_BC)
        # Both are differences of float32 sums near 1: what is left of them has the errors of those.
        assert found.item() == pytest.approx(distance.item(), rel=1e-5, abs=1e-6)


def test_a_teacher_that_sees_the_whole_graph_scores_the_same_candidates_there(training_graph: TrainingGraph) -> None:
    phase = Phase(
        sampler="subgraph",
        walk_chance=1,
        walk_triples=(20, 60),
        whole_relations=True,
        batch_size=4,
        negatives=6,
        max_answers=3,
    )
    teacher = GammaModel(GammaConfig(dim=8, num_layers=2, attention_dim=6)).eval()
    drawer = GraphDrawer([training_graph], [phase], seed=0, with_whole=True)
    for number in range(4):
        (batch,) = drawer.draw(number, 0)
        whole, source_B, candidate_BC = batch.whole_edges, batch.whole_source_B, batch.whole_candidate_BC
        assert whole is not None and source_B is not None and candidate_BC is not None
        assert whole.num_nodes == training_graph.num_entities > batch.edges.num_nodes
        facts = set(map(tuple, training_graph.triples.tolist()))
        for b, c in batch.right_BC.nonzero().tolist():
            asked, source, answer = int(batch.relation_B[b]), int(source_B[b]), int(candidate_BC[b, c])
            direct = asked % training_graph.num_relations
            fact = (source, direct, answer) if asked < training_graph.num_relations else (answer, direct, source)
            assert fact in facts, "the right answers are facts of the whole graph"
            ends = (torch.tensor([end]) for end in (source, asked, answer))
            assert not whole.has(*ends), "and its edges do not give them away"
        starts = Starts.single(source_B)
        wanted = teacher(whole, batch.relation_graph, starts, batch.relation_B, candidate_BC).score_BC
        assert torch.allclose(Teacher(teacher, sees_whole=True).scores(batch), wanted, atol=1e-5)
        assert not torch.allclose(Teacher(teacher).scores(batch), wanted, atol=1e-3)


def test_entropy_is_that_of_the_slow_reference() -> None:
    _, right, wrong = candidates()
    weights = torch.rand(6, 9, 3, dtype=torch.float64).softmax(-1)
    wanted = [
        slow.mean([slow.entropy(weights[b, c].tolist()) for c in range(9) if right[b, c] or wrong[b, c]])
        for b in range(6)
    ]
    assert branch_entropy(weights, right | wrong).item() == pytest.approx(slow.mean(wanted), rel=1e-9)


@pytest.mark.parametrize("loss", ["bce", "softmax"])
@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_the_objective_rewards_entropy(loss: str, beta: float) -> None:
    torch.manual_seed(2)
    batch = random_batch(30, 120, 4, 5, 8)
    model = GammaModel(GammaConfig(dim=8, num_layers=2, attention_dim=6, temperature=0.2)).train()
    config = TrainConfig.parse({"loss": loss, "entropy_weight": beta, "adversarial_temperature": 0.5})
    found, told = batch_loss(model, batch, config)
    with torch.no_grad():
        starts = Starts.single(batch.source_B)
        scores = model(batch.edges, batch.relation_graph, starts, batch.relation_B, batch.candidate_BC)
    losses, entropies = [], []
    for b in range(len(batch)):
        row = scores.score_BC[b].tolist(), batch.right_BC[b].tolist(), batch.wrong_BC[b].tolist()
        losses.append(slow.bce(*row, 0.5) if loss == "bce" else slow.cross_entropy(*row))
        counted = (batch.right_BC | batch.wrong_BC)[b].nonzero()[:, 0].tolist()
        entropies.append(slow.mean([slow.entropy(scores.weight_BCK[b, c].tolist()) for c in counted]))
    assert found.item() == pytest.approx(slow.objective(losses, entropies, beta), rel=1e-5)
    assert told == pytest.approx(slow.mean(entropies), rel=1e-5)


def test_accumulated_batches_give_the_mean_of_their_gradients(
    training_graph: TrainingGraph, tiny_config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config.with_options(accumulate=3, steps=1, clip_norm=0.0, model_options={"dim": 8, "num_layers": 2})
    trainer = Trainer(config, [training_graph], RunFolder(tmp_path / "run"))
    losses: list[torch.Tensor] = []

    def noted(model: torch.nn.Module, batch: Batch, config: TrainConfig, _: object) -> tuple[torch.Tensor, float]:
        loss, entropy = batch_loss(model, batch, config)
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True)
        losses.append(torch.cat([gradient.flatten() for gradient in gradients]))
        return loss, entropy

    parameters = list(trainer.model.parameters())
    monkeypatch.setattr("gamma_kg.training.loop.batch_loss", noted)
    trainer.run()
    stepped = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])
    assert len(losses) == 3
    torch.testing.assert_close(stepped, torch.stack(losses).mean(0), rtol=1e-4, atol=1e-6)
