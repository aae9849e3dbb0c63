"""The mean of weights."""

from __future__ import annotations

import pytest
import torch

from gamma_kg.errors import CheckpointError
from gamma_kg.nn.averaging import average
from gamma_kg.nn.checkpoint import Checkpoint
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.model import GammaModel


def checkpoint(seed: int, **options: object) -> Checkpoint:
    torch.manual_seed(seed)
    config = GammaConfig(dim=8, num_layers=2, attention_dim=6, **options)
    return Checkpoint(config, GammaModel(config).state_dict(), {"data": {f"graph {seed}": {}}})


def test_shares_weigh_the_weights() -> None:
    first, second = checkpoint(0), checkpoint(1)
    mean = average([first, second], [1, 3])
    for name, weight in mean.weights.items():
        torch.testing.assert_close(weight, 0.25 * first.weights[name] + 0.75 * second.weights[name])
    assert [made["graphs"] for made in mean.provenance["mean_of"]] == [["graph 0"], ["graph 1"]]
    assert mean.provenance["shares"] == [0.25, 0.75]


def test_one_with_pairs_gives_them_to_the_others() -> None:
    plain, pairs = checkpoint(0), checkpoint(1, relation_graph="pairs")
    mean = average([plain, pairs])
    assert mean.config.relation_graph == "pairs"
    name = next(
        name for name in mean.weights if mean.weights[name].shape != plain.weights.get(name, torch.empty(0)).shape
    )
    more = len(plain.weights[name])
    torch.testing.assert_close(mean.weights[name][more:], pairs.weights[name][more:] / 2)


@pytest.mark.parametrize("shares", [[1.0], [1.0, -1.0], [0.0, 0.0]])
def test_shares_that_make_no_sense_are_refused(shares: list[float]) -> None:
    with pytest.raises(CheckpointError, match="wants as many shares"):
        average([checkpoint(0), checkpoint(1)], shares)


def test_models_of_another_kind_are_refused() -> None:
    with pytest.raises(CheckpointError, match="models of one kind"):
        average([checkpoint(0), checkpoint(1, branches=("real",))])
