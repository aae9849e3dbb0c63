"""Attention over branches and the score agree with a slow reference, and training drops weights as it should."""

from __future__ import annotations

import pytest
import torch

import slow_reference as slow
from gamma_kg import GammaConfig
from gamma_kg.nn.config import MIN_TEMPERATURE
from gamma_kg.nn.fusion import BranchAttention
from gamma_kg.nn.model import GammaModel, Scores

B, C, D = 2, 5, 4


def model_of(**options: object) -> GammaModel:
    torch.manual_seed(5)
    config = GammaConfig.parse({"dim": D, "num_layers": 1, "attention_dim": 3, "uniform_mix": 0.2, **options})
    model = GammaModel(config).double()
    for parameter in model.score.parameters():  # far from zero, so that a wrong weight shows
        torch.nn.init.normal_(parameter)
    return model.eval()


def inputs(model: GammaModel) -> tuple[list[torch.Tensor], torch.Tensor]:
    torch.manual_seed(6)
    states = [torch.randn(B, C, D, dtype=torch.float64) for _ in model.branches]
    return states, torch.randn(B, D, dtype=torch.float64)


def slow_scores(model: GammaModel, states: list[torch.Tensor], query: torch.Tensor) -> Scores:
    """What docs/model.md §6 says, number by number."""
    attention, score = model.attention, model.score
    assert isinstance(attention, BranchAttention)
    keys = [key.tolist() for key in attention.keys.parameters()]  # type: ignore[union-attr]
    context = attention.context.weight.tolist()  # type: ignore[union-attr]
    kappa, mix = attention.temperature.item(), model.config.uniform_mix
    hidden, out = score.hidden, score.out
    numbers, weights = torch.empty(B, C, dtype=torch.float64), torch.empty(B, C, len(keys), dtype=torch.float64)
    for b in range(B):
        for c in range(C):
            z = [state[b, c].tolist() for state in states]
            alpha = slow.branch_weights(z, query[b].tolist(), keys, context, kappa, mix)
            weights[b, c] = torch.tensor(alpha, dtype=torch.float64)
            numbers[b, c] = slow.score(
                z,
                query[b].tolist(),
                alpha,
                hidden.weight.tolist(),
                hidden.bias.tolist(),
                out.weight[0].tolist(),
                out.bias.item(),
            )
    return Scores(numbers, weights)


@pytest.mark.parametrize("with_gradients", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("kappa", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("branches", [("complex", "dual"), ("real", "complex", "split-complex")])
def test_weights_and_scores_are_those_of_the_slow_reference(
    branches: tuple[str, ...], kappa: float, with_gradients: bool
) -> None:
    model = model_of(branches=branches, temperature=kappa)
    states, query = inputs(model)
    wanted = slow_scores(model, states, query)
    with torch.set_grad_enabled(with_gradients):
        found = model.fuse(states, query)
    assert found.weight_BCK is not None and wanted.weight_BCK is not None
    torch.testing.assert_close(found.weight_BCK, wanted.weight_BCK, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found.score_BC, wanted.score_BC, rtol=1e-10, atol=1e-10)


def test_a_small_kappa_sharpens_the_choice_and_a_large_one_levels_it() -> None:
    spread = []
    for kappa in (0.1, 1.0, 10.0):
        model = model_of(temperature=kappa)
        weights = model.fuse(*inputs(model)).weight_BCK
        assert weights is not None
        spread.append((weights[..., 0] - weights[..., 1]).abs().mean().item())
    assert spread[0] > 2 * spread[1] > 4 * spread[2]


@pytest.mark.parametrize("kappa", [-1.0, 0.0, 1e-9])
def test_a_kappa_that_learning_carried_past_zero_does_not_turn_the_attention_round(kappa: float) -> None:
    model = model_of(uniform_mix=0.0)
    assert model.attention is not None
    states, query = inputs(model)
    before = model.fuse(states, query).weight_BCK
    torch.nn.init.constant_(model.attention.temperature, kappa)
    found = model.fuse(states, query)
    assert before is not None and found.weight_BCK is not None
    assert torch.equal(found.weight_BCK.argmax(-1), before.argmax(-1)) and found.score_BC.isfinite().all()
    with torch.no_grad():
        torch.testing.assert_close(model.fuse(states, query).weight_BCK, found.weight_BCK)
    found.weight_BCK.square().sum().backward()  # type: ignore[no-untyped-call]
    gradient = model.attention.temperature.grad
    assert gradient is not None and gradient.isfinite()
    torch.nn.init.constant_(model.attention.temperature, MIN_TEMPERATURE)
    torch.testing.assert_close(model.fuse(states, query).weight_BCK, found.weight_BCK)


def test_training_drops_branch_weights_and_scales_those_it_keeps() -> None:
    model = model_of(attention_dropout=0.4).train()
    states, query = inputs(model)
    whole = slow_scores(model, states, query)
    assert whole.weight_BCK is not None
    hidden, out = model.score.hidden, model.score.out
    arguments = hidden.weight.tolist(), hidden.bias.tolist(), out.weight[0].tolist(), out.bias.item()
    # At one entity each of two weights is dropped or scaled by 1 / (1 − p): four scores are possible.
    z, q, alpha = [state[0, 0].tolist() for state in states], query[0].tolist(), whole.weight_BCK[0, 0].tolist()
    possible = {
        kept: slow.score(z, q, [a * k / 0.6 for a, k in zip(alpha, kept, strict=True)], *arguments)
        for kept in ((0, 0), (0, 1), (1, 0), (1, 1))
    }
    seen = dict.fromkeys(possible, 0)
    torch.manual_seed(0)
    for _ in range(400):
        found = model.fuse(states, query)
        assert found.weight_BCK is not None  # what is told, and what the entropy is of, are the weights before dropping
        torch.testing.assert_close(found.weight_BCK, whole.weight_BCK, rtol=1e-9, atol=1e-9)
        nearest = min(possible, key=lambda kept: abs(possible[kept] - float(found.score_BC[0, 0].detach())))
        assert float(found.score_BC[0, 0].detach()) == pytest.approx(possible[nearest], abs=1e-9)
        seen[nearest] += 1
    shares = {kept: count / 400 for kept, count in seen.items()}
    for kept, share in shares.items():
        assert share == pytest.approx(0.6 ** sum(kept) * 0.4 ** (2 - sum(kept)), abs=0.08)
    assert torch.equal(model.eval().fuse(states, query).score_BC, model.fuse(states, query).score_BC)
