"""Every kernel agrees with plain torch on every instruction set that this machine has, gradients included."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from odd_graphs import BILINEAR, GRAPHS, assert_alike

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import Backend, backend_of, native
from gamma_kg.kernels.backend import plain_torch
from gamma_kg.kernels.native.loading import INSTRUCTION_SETS
from gamma_kg.kernels.parameters import LayerStack, ScoreWeights
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.layer import RelationalLayer
from gamma_kg.nn.model import GammaModel

EDGES = GRAPHS["ordinary"]
# 64 channels have code of their own, 94 fill no vector; float64 halves the vectors.
WIDTHS = [(64, torch.float32), (94, torch.float32), (64, torch.float64), (10, torch.float64)]


@pytest.fixture(params=INSTRUCTION_SETS)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    module = native.module()
    assert module is not None
    before = module.isa()
    if not module.use_isa(request.param):
        pytest.skip(f"this machine or build has no {request.param}")
    assert module.isa() == request.param
    yield request.param
    module.use_isa(before)


def both_backends() -> Iterator[Backend]:
    yield backend_of(torch.device("cpu"))
    with plain_torch() as plain:
        yield plain


def random_inputs(edges: Edges, B: int, D: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(D)
    shapes = (B, edges.num_nodes, D), (B, edges.num_types, D), (B, D)
    x, relation, boundary = (torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes)
    return x, relation, boundary


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Gradients are sums over all nodes: their rounding is that of their largest."""
    tolerance = (3e-4 if wanted.dtype == torch.float32 else 1e-11) * float(wanted.detach().abs().max() + 1)
    assert found.shape == wanted.shape and float((found - wanted).detach().abs().max()) <= tolerance


@pytest.mark.parametrize("algebra", BILINEAR)
@pytest.mark.parametrize(("D", "dtype"), WIDTHS)
def test_propagation_and_its_gradients(isa: str, algebra: str, D: int, dtype: torch.dtype) -> None:
    x, relation, _ = random_inputs(EDGES, 2, D, dtype)
    found, wanted = (backend.propagate(EDGES, x, relation, algebra) for backend in both_backends())
    assert_alike(found, wanted)
    gradient = torch.randn_like(found)
    for ours, theirs in zip(*(torch.autograd.grad(y, (x, relation), gradient) for y in (found, wanted)), strict=True):
        assert_alike(ours, theirs)


@pytest.mark.parametrize("algebra", BILINEAR)
@pytest.mark.parametrize(("D", "dtype"), WIDTHS)
def test_a_layer_with_and_without_gradients_first_and_later(isa: str, algebra: str, D: int, dtype: torch.dtype) -> None:
    x, relation, boundary = random_inputs(EDGES, 2, D, dtype)
    starts = Starts.of_weights(torch.tensor([0, 0, 1]), torch.tensor([5, 41, 7]), torch.randn(3, dtype=dtype), 2)
    weights = RelationalLayer(D, algebra).to(dtype).weights()
    arguments = relation, starts, boundary, weights
    for states in (x, None):
        with torch.no_grad():
            found, wanted = (backend.layer(EDGES, states, *arguments) for backend in both_backends())
        assert_alike(found, wanted)
    found, wanted = (backend.layer(EDGES, x, *arguments) for backend in both_backends())
    gradient, variables = torch.randn_like(found), (x, relation, boundary, *weights[:4])
    for ours, theirs in zip(*(torch.autograd.grad(y, variables, gradient) for y in (found, wanted)), strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("branches", [("real",), ("complex", "dual"), ("real", "complex", "dual")])
@pytest.mark.parametrize(("D", "dtype"), WIDTHS)
@torch.no_grad()
def test_the_score(isa: str, branches: tuple[str, ...], D: int, dtype: torch.dtype) -> None:
    torch.manual_seed(D)
    model = GammaModel(GammaConfig(branches=branches, dim=D, attention_dim=30, temperature=0.4)).to(dtype)
    states = [torch.randn(3, 100, D, dtype=dtype) for _ in branches]
    query = torch.randn(3, D, dtype=dtype)
    weights = model.score.weights(None if model.attention is None else model.attention.weights(query))
    compare_scores(states, query, weights)
    # Some of the candidates: rows that are a part of a larger tensor.
    compare_scores([z[:, 13:77] for z in states], query, weights)


def compare_scores(states: list[torch.Tensor], query: torch.Tensor, weights: ScoreWeights) -> None:
    (found, alpha), (wanted, wanted_alpha) = (backend.score(states, query, weights) for backend in both_backends())
    assert_alike(found, wanted)
    assert (alpha is None) == (wanted_alpha is None)
    if alpha is not None and wanted_alpha is not None:
        assert_alike(alpha, wanted_alpha)


@pytest.mark.parametrize("algebra", BILINEAR)
@pytest.mark.parametrize(("D", "dtype"), WIDTHS)
@torch.no_grad()
def test_neighbourhoods(isa: str, algebra: str, D: int, dtype: torch.dtype) -> None:
    from test_union import OFFSET, UNION

    torch.manual_seed(D)
    layers = [RelationalLayer(D, algebra).to(dtype) for _ in range(3)]
    tables = [torch.randn(2, UNION.num_types, D, dtype=dtype) for _ in layers]
    starts, boundary = Starts.single(OFFSET[:-1]), torch.randn(5, D, dtype=dtype)
    stack = LayerStack([layer.weights() for layer in layers], tables, torch.tensor([0, 1, 1, 0, 1]))
    found, wanted = (backend.union_layers(UNION, OFFSET, starts, boundary, stack) for backend in both_backends())
    assert_alike(found, wanted)
    apart = stack._replace(tables=[list(table) for table in tables])  # each relation's where it was made
    native, plain = (backend.union_layers(UNION, OFFSET, starts, boundary, apart) for backend in both_backends())
    assert torch.equal(native, found) and torch.equal(plain, wanted)
