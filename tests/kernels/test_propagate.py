"""The native operator gives what the plain path defines: value and gradients, for every algebra and odd graph."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_graphs import BILINEAR, GRAPHS, THREADED, assert_alike, random_graph

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.kernels import propagate
from gamma_kg.kernels.native.edge_arrays import arrays
from gamma_kg.kernels.reference import propagate_reference


def inputs(edges: Edges, B: int, tables: int, D: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(edges.num_edges)
    x = torch.randn(B, edges.num_nodes, D, dtype=dtype, requires_grad=True)
    return x, torch.randn(tables, edges.num_types, D, dtype=dtype, requires_grad=True)


def compare(edges: Edges, x: torch.Tensor, relation: torch.Tensor, algebra: str) -> None:
    found, wanted = propagate(edges, x, relation, algebra), propagate_reference(edges, x, relation, algebra)
    gradient = torch.randn_like(found)
    assert_alike(found, wanted)
    both = [torch.autograd.grad(result, (x, relation), gradient) for result in (found, wanted)]
    for by_native, by_torch in zip(*both, strict=True):
        assert_alike(by_native, by_torch)


@pytest.mark.parametrize("algebra", BILINEAR)
@pytest.mark.parametrize(("threads", "graph"), THREADED, indirect=["threads"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_value_and_gradients_equal_the_plain_path(graph: str, algebra: str, dtype: torch.dtype, threads: int) -> None:
    for B, tables, D in ((3, 3, 64), (2, 1, 32)):
        compare(GRAPHS[graph], *inputs(GRAPHS[graph], B, tables, D, dtype), algebra)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    nodes=st.integers(1, 40),
    triples=st.integers(0, 200),
    half=st.integers(1, 50),
    B=st.integers(1, 4),
    shared=st.booleans(),
    algebra=st.sampled_from(BILINEAR),
)
def test_any_width_and_any_graph(
    seed: int, nodes: int, triples: int, half: int, B: int, shared: bool, algebra: str
) -> None:
    edges = random_graph(seed, nodes, 3, triples)
    compare(edges, *inputs(edges, B, 1 if shared else B, 2 * half, torch.float64), algebra)


@pytest.mark.parametrize("D", [1, 7, 47, 65])
def test_real_takes_odd_widths(D: int) -> None:
    compare(GRAPHS["ordinary"], *inputs(GRAPHS["ordinary"], 2, 2, D, torch.float32), "real")


def test_runs_repeat_bit_for_bit(threads: int) -> None:
    edges = GRAPHS["huge degree"]
    x, relation = inputs(edges, 1, 1, 64, torch.float32)
    first, *others = (
        (out, *torch.autograd.grad(out, (x, relation), torch.ones_like(out)))
        for out in (propagate(edges, x, relation, "complex") for _ in range(4))
    )
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("algebra", BILINEAR)
def test_torch_accepts_the_operator(algebra: str) -> None:
    edges = GRAPHS["ordinary"]
    x, relation = inputs(edges, 2, 2, 8, torch.float64)
    torch.library.opcheck(torch.ops.gamma_kg.propagate.default, (x, relation, *arrays(edges), algebra))


def test_compiled_functions_keep_the_operator_whole() -> None:
    edges = GRAPHS["ordinary"]
    x, relation = inputs(edges, 2, 2, 8, torch.float64)

    def doubled(x: torch.Tensor, relation: torch.Tensor) -> torch.Tensor:
        return 2 * propagate(edges, x, relation, "complex")

    compiled = torch.compile(doubled, backend="aot_eager", fullgraph=True)
    found, wanted = (f(x, relation) for f in (compiled, doubled))
    assert torch.equal(found, wanted)
    for a, b in zip(*(torch.autograd.grad(y.sum(), (x, relation)) for y in (found, wanted)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("graph", GRAPHS)
def test_without_gradients_the_short_way_gives_the_same_bits(graph: str) -> None:
    edges = GRAPHS[graph]
    x, relation = inputs(edges, 2, 2, 64, torch.float32)
    by_operator = propagate(edges, x, relation, "complex")
    with torch.no_grad():
        assert torch.equal(propagate(edges, x, relation, "complex"), by_operator)


def test_compiled_functions_without_gradients_keep_the_operator_too() -> None:
    edges, kept = GRAPHS["ordinary"], []
    x, relation = (value.detach() for value in inputs(edges, 2, 2, 8, torch.float64))

    def backend(module: torch.fx.GraphModule, examples: list[torch.Tensor]) -> torch.fx.GraphModule:
        kept.extend(str(node.target) for node in module.graph.nodes)
        return module

    found = torch.compile(lambda x: 2 * propagate(edges, x, relation, "dual"), backend=backend, fullgraph=True)(x)
    assert torch.equal(found, 2 * propagate(edges, x, relation, "dual"))
    assert any("gamma_kg.propagate" in target for target in kept)


def test_gradients_pass_a_numerical_check() -> None:
    edges = random_graph(5, 5, 2, 9)
    x, relation = inputs(edges, 2, 2, 4, torch.float64)
    for algebra in BILINEAR:
        assert torch.autograd.gradcheck(lambda a, b, name=algebra: propagate(edges, a, b, name), (x, relation))


def test_strided_inputs_are_taken() -> None:
    edges = GRAPHS["ordinary"]
    x, relation = inputs(edges, 2, 2, 128, torch.float64)
    with torch.no_grad():
        found = propagate(edges, x[..., ::2], relation[..., :64], "dual")
        assert_alike(found, propagate_reference(edges, x[..., ::2], relation[..., :64], "dual"))


def test_wrong_shapes_are_refused_with_what_was_wanted() -> None:
    edges = GRAPHS["ordinary"]
    x, relation = inputs(edges, 2, 2, 8, torch.float32)
    with pytest.raises(ValueError, match=r"states: wanted \(any, 60, any\), found \(2, 5, 8\)"):
        propagate(edges, x[:, :5], relation, "real")
    with pytest.raises(ValueError, match=r"relations: wanted \(2, 8, 8\), found \(2, 3, 8\)"):
        propagate(edges, x, relation[:, :3], "real")
    with pytest.raises(ValueError, match="into 2 parts: 7 channels"):
        propagate(edges, x[..., :7], relation[..., :7], "complex")


def test_ids_out_of_range_never_reach_the_kernel() -> None:
    good = GRAPHS["ordinary"]
    bad = Edges(
        good.num_nodes,
        good.num_types,
        good.node_ptr,
        good.group_type,
        good.group_ptr,
        good.neighbour + 50,
        good.inverse,
    )
    x, relation = inputs(good, 1, 1, 8, torch.float32)
    with pytest.raises(DataError, match="out of range"):
        propagate(bad, x, relation, "real")
