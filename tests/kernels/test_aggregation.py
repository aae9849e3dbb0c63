"""Mean and PNA against loops over numbers; a message function that the engine does not know; encoder options."""

from __future__ import annotations

import math

import pytest
import torch
from odd_graphs import assert_alike, edges_of, random_graph

from gamma_kg import Gamma, GammaConfig, KnowledgeGraph
from gamma_kg.errors import ConfigError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import aggregation
from gamma_kg.kernels.algebra import ALGEBRAS, Algebra
from gamma_kg.kernels.backend import plain_torch
from gamma_kg.kernels.parameters import LayerWeights
from gamma_kg.kernels.reference import aggregate
from gamma_kg.nn.layer import RelationalLayer


def weights_of(kind: str, D: int, algebra: str = "real") -> LayerWeights:
    return RelationalLayer(D, algebra, aggregation=kind).double().weights()


def slow_aggregate(
    edges: Edges, x: torch.Tensor, relation: torch.Tensor, boundary: torch.Tensor, kind: str
) -> torch.Tensor:
    """One query, real product, number by number; the boundary is one more message."""
    node, type_, neighbour = (ids.tolist() for ids in edges.slice(0, edges.num_edges))
    N, D = x.shape
    reached = [[boundary[n].tolist()] for n in range(N)]
    for u, r, v in zip(node, type_, neighbour, strict=True):
        reached[u].append((x[v] * relation[r]).tolist())
    if kind == "mean":
        return torch.tensor([[sum(m[d] for m in of) / len(of) for d in range(D)] for of in reached], dtype=x.dtype)
    average = sum(math.log(len(of)) for of in reached) / N
    rows = []
    for of in reached:
        scale = math.log(len(of)) / average
        row = []
        for pick in range(4):
            for d in range(D):
                values = [m[d] for m in of]
                mean = sum(values) / len(values)
                variance = sum(v * v for v in values) / len(values) - mean * mean
                statistic = (mean, max(values), min(values), math.sqrt(max(variance, 1e-6)))[pick]
                row += [statistic, statistic * scale, statistic / max(scale, 1e-2)]
        rows.append(row)
    return torch.tensor(rows, dtype=x.dtype)


@pytest.mark.parametrize("chunk", [1, 1 << 22], ids=["a node at a time", "all at once"])
@pytest.mark.parametrize("kind", ["mean", "pna"])
def test_aggregates_are_those_of_the_slow_reference(kind: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregation, "CHUNK_FLOATS", chunk)
    torch.manual_seed(1)
    edges = random_graph(3, 9, 2, 20)
    x, relation = torch.randn(2, 9, 3, dtype=torch.float64), torch.randn(2, 4, 3, dtype=torch.float64)
    starts, boundary = Starts.single(torch.tensor([2, 5])), torch.randn(2, 3, dtype=torch.float64)
    found = aggregate(edges, x, relation, starts, boundary, weights_of(kind, 3))
    for b in range(2):
        wanted = slow_aggregate(edges, x[b], relation[b], starts.spread(9, boundary)[b], kind)
        torch.testing.assert_close(found[b], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["mean", "pna"])
def test_gradients_pass_a_numerical_check(kind: str) -> None:
    torch.manual_seed(2)
    edges = edges_of(torch.tensor([[0, 0, 1], [1, 0, 2], [0, 0, 2]]).numpy(), 4, 1)
    x, relation = (torch.randn(1, n, 2, dtype=torch.float64, requires_grad=True) for n in (4, 2))
    boundary = torch.randn(1, 2, dtype=torch.float64, requires_grad=True)
    layer, starts = weights_of(kind, 2), Starts.single(torch.tensor([1]))
    assert torch.autograd.gradcheck(lambda *given: aggregate(edges, given[0], given[1], starts, given[2], layer),
                                    (x, relation, boundary))  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"aggregation": "mean"},
        {"aggregation": "pna"},
        {"relation_algebra": "complex"},
        {"relation_algebra": "translation", "relation_layers": 1},
        {"relation_layers": 4},
    ],
)
def test_options_of_the_encoders_score_alike_on_both_backends(
    options: dict[str, object], family: KnowledgeGraph
) -> None:
    config = GammaConfig.parse({"dim": 8, "num_layers": 2, "attention_dim": 6, **options})
    gamma = Gamma.from_config(config, seed=1)
    gamma.model.double()
    queries = torch.arange(8), torch.arange(8)
    found = gamma.scores(family, *queries)
    again = Gamma(gamma.model)
    with plain_torch():
        assert_alike(found, again.scores(family, *queries))
    usual = Gamma.from_config(GammaConfig(dim=8, num_layers=2, attention_dim=6), seed=1)
    usual.model.double()
    assert not torch.allclose(found, usual.scores(family, *queries))
    layers = gamma.model.relation_encoder.layers
    assert len(layers) == options.get("relation_layers", 2)


def test_an_unknown_relation_algebra_is_refused() -> None:
    with pytest.raises(ConfigError, match="relation_algebra: no message function 'reel'; did you mean 'real'"):
        GammaConfig.parse({"relation_algebra": "reel"})


def quaternion(x: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    (a, b, c, d), (e, f, g, h) = x.chunk(4, -1), r.chunk(4, -1)
    parts = a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f
    return torch.cat((*parts, a * h + b * g - c * f + d * e), -1)


def test_a_new_bilinear_message_function_is_a_row(family: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine does not know it, so plain torch computes; the first layer's short way holds for it too."""
    monkeypatch.setitem(ALGEBRAS, "quaternion", Algebra("quaternion", quaternion, components=4, bilinear=True))
    with pytest.raises(ConfigError, match="splits the channels into 4 parts, so dim must be a multiple of 4"):
        GammaConfig.parse({"branches": ["quaternion"], "dim": 6})
    gamma = Gamma.from_config(GammaConfig(branches=("quaternion", "real"), dim=8, num_layers=2), seed=1)
    gamma.model.double()
    queries = torch.arange(8), torch.arange(8)
    found = gamma.scores(family, *queries)
    monkeypatch.setitem(ALGEBRAS, "quaternion", Algebra("quaternion", quaternion, components=4, bilinear=False))
    assert_alike(Gamma(gamma.model).scores(family, *queries), found)
    assert found.isfinite().all()
