"""Branches of several models side by side in one."""

from __future__ import annotations

import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.errors import CheckpointError
from gamma_kg.nn.checkpoint import Checkpoint
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.joining import join

# With nothing but the uniform share in the branch weights, every branch counts 1/K: joining then changes no score.
SMALL = GammaConfig(dim=8, num_layers=2, attention_dim=6, uniform_mix=1.0)


def checkpoint(seed: int, **options: object) -> Checkpoint:
    config = SMALL.with_options(**options)
    model = Gamma.from_config(config, seed=seed).model
    return Checkpoint(config, model.state_dict(), {"data": {f"graph {seed}": {}}})


def scores(made: Checkpoint, kg: KnowledgeGraph) -> torch.Tensor:
    gamma = Gamma.from_checkpoint(made)
    gamma.model.double()
    return gamma.scores(kg, torch.arange(kg.num_entities), torch.arange(kg.num_entities) % (2 * kg.num_relations))


@pytest.mark.parametrize(
    "options",
    [
        [{}, {"branches": ("real",)}],
        [{"branches": ("real",)}, {"branches": ("dual",), "mlp_hidden": 5}, {}],
        [{}, {"branches": ("real", "dual"), "relation_encoders": "own"}],
    ],
)
def test_the_joined_model_begins_with_the_mean_of_the_scores(
    options: list[dict[str, object]], family: KnowledgeGraph
) -> None:
    members = [checkpoint(seed, **changes) for seed, changes in enumerate(options)]
    joined = join(members)
    wanted = torch.stack([scores(member, family) for member in members]).mean(0)
    torch.testing.assert_close(scores(joined, family), wanted)
    assert joined.config.branches == tuple(name for member in members for name in member.config.branches)
    assert joined.config.relation_encoders == "own"
    assert [made["graphs"] for made in joined.provenance["joined"]] == [[f"graph {s}"] for s in range(len(members))]


def test_pairs_of_one_are_given_to_the_others(family: KnowledgeGraph) -> None:
    plain, pairs = checkpoint(0), checkpoint(1, relation_graph="pairs")
    joined = join([plain, pairs])
    assert joined.config.relation_graph == "pairs"
    torch.testing.assert_close(scores(joined, family), (scores(plain, family) + scores(pairs, family)) / 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dim": 16}, "same dim"),
        ({"num_layers": 3}, "same num_layers"),
        ({"attention": "no-key"}, "full attention"),
        ({"position": "early"}, "fused late"),
    ],
)
def test_models_that_do_not_fit_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        join([checkpoint(0), checkpoint(1, **options)])


def test_one_model_is_none_to_join() -> None:
    with pytest.raises(CheckpointError, match="two models or more"):
        join([checkpoint(0)])
