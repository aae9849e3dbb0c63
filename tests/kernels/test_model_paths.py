"""Every variant scores alike on the fast path and on the plain one, with and without gradients."""

from __future__ import annotations

import pytest
import torch
from odd_graphs import assert_alike

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.backend import plain_torch
from variants import VARIANTS


def queries(kg: KnowledgeGraph) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.arange(kg.num_entities).repeat(2)
    return source, torch.arange(len(source)) % (2 * kg.num_relations)


def small(name: str, dtype: torch.dtype) -> Gamma:
    gamma = Gamma.from_config(VARIANTS[name].with_options(num_layers=2, mlp_hidden=None, dim=20), seed=1)
    gamma.model.to(dtype)
    return gamma


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", VARIANTS)
def test_scores_equal_those_of_the_plain_path(name: str, dtype: torch.dtype, family: KnowledgeGraph) -> None:
    gamma = small(name, dtype)
    source, relation = queries(family)
    fast = list(gamma.score_batches(family, source, relation))
    with plain_torch():
        plain = list(small(name, dtype).score_batches(family, source, relation))
    for a, b in zip(fast, plain, strict=True):
        assert_alike(a.scores.score_BC, b.scores.score_BC)
        assert (a.scores.weight_BCK is None) == (b.scores.weight_BCK is None)
        if a.scores.weight_BCK is not None and b.scores.weight_BCK is not None:
            assert_alike(a.scores.weight_BCK, b.scores.weight_BCK)


@pytest.mark.parametrize("name", VARIANTS)
def test_scores_of_weighted_starts_equal_those_of_the_plain_path(name: str, family: KnowledgeGraph) -> None:
    relation = torch.arange(2 * family.num_relations)
    torch.manual_seed(4)
    starts = Starts.of_dense(torch.randn(len(relation), family.num_entities) * (torch.rand(len(relation), 1) < 0.7))

    def scores() -> torch.Tensor:
        found = torch.empty(len(relation), family.num_entities, dtype=torch.float64)
        for batch in small(name, torch.float64).score_batches(family, starts, relation):
            found[batch.query] = batch.scores.score_BC[batch.row]
        return found

    fast = scores()
    with plain_torch():
        assert_alike(fast, scores())


@pytest.mark.parametrize("name", VARIANTS)
def test_parameter_gradients_equal_those_of_the_plain_path(name: str, family: KnowledgeGraph) -> None:
    model = small(name, torch.float64).model
    source, relation = queries(family)

    def gradients() -> list[torch.Tensor]:
        scores, _ = model(family.edges, family.relation_graph, Starts.single(source), relation)
        found = torch.autograd.grad((scores * torch.linspace(-1, 2, scores.numel()).view_as(scores)).sum(),
                                    tuple(model.parameters()), allow_unused=True, materialize_grads=True)  # fmt: skip
        return list(found)

    fast = gradients()
    with plain_torch():
        plain = gradients()
    for a, b in zip(fast, plain, strict=True):
        assert (a - b).abs().max() <= 1e-10 * (b.abs().max() + 1)


def test_an_empty_graph_is_scored_alike() -> None:
    kg = KnowledgeGraph(torch.zeros(0, 3, dtype=torch.int64), ["a", "b"], ["r"])
    assert isinstance(kg.edges, Edges)
    fast = small("gamma", torch.float64).scores(kg, [0, 1], [0, 1])
    with plain_torch():
        assert_alike(fast, small("gamma", torch.float64).scores(kg, [0, 1], [0, 1]))
