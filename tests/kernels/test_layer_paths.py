"""Fast forms of a layer (no gradients, gradients, first layer) agree with the plain one in all they give."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from odd_graphs import BILINEAR, GRAPHS, THREADED, assert_alike
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.first import first_layer
from gamma_kg.kernels.native.layers import LayerJob, layers_forward
from gamma_kg.kernels.native.training import layer_with_gradients
from gamma_kg.kernels.reference import layer_reference
from gamma_kg.nn.layer import RelationalLayer

SHAPES = [(3, 3, 64), (2, 1, 64), (1, 1, 94), (2, 2, 10)]


class Case:
    """A layer with unordinary norm parameters, and inputs for it."""

    def __init__(self, edges: Edges, shape: tuple[int, int, int], algebra: str, dtype: torch.dtype) -> None:
        B, tables, D = shape
        torch.manual_seed(edges.num_edges + D)
        self.edges, self.algebra = edges, algebra
        self.layer = RelationalLayer(D, algebra).to(dtype)
        with torch.no_grad():
            self.layer.norm.weight.normal_()
            self.layer.norm.bias.normal_()
        self.weights = self.layer.weights()
        self.starts = Starts.single(torch.randint(edges.num_nodes, (B,)))
        self.x = torch.randn(B, edges.num_nodes, D, dtype=dtype, requires_grad=True)
        self.relation = torch.randn(tables, edges.num_types, D, dtype=dtype, requires_grad=True)
        self.boundary = torch.randn(B, D, dtype=dtype, requires_grad=True)

    def plain(self, x: Tensor) -> Tensor:
        return layer_reference(self.edges, x, self.relation, self.starts, self.boundary, self.weights)

    def fused(self, x: Tensor | None, relation: Tensor, which: Tensor | None) -> Tensor:
        job = LayerJob(relation, self.weights, torch.empty_like(self.x))
        return layers_forward(self.edges, x, [job], which, self.starts, self.boundary)

    def initial(self) -> Tensor:
        return self.starts.spread(self.edges.num_nodes, self.boundary)

    def with_many_starts(self) -> Case:
        """Each query starts at about half of the nodes, the first of several at none."""
        B, N = len(self.starts), self.edges.num_nodes
        is_start = torch.rand(B, N) < 0.5
        if B > 1:
            is_start[0] = False
        weight_S = torch.randn(int(is_start.sum()), dtype=self.x.dtype)
        query_S, node_S = is_start.nonzero(as_tuple=True)
        starts = Starts.of_weights(query_S, node_S, weight_S, B)
        assert starts.weight_S is not None
        self.starts = Starts(starts.node_S, starts.weight_S.requires_grad_(), starts.offset_B1)
        return self

    def starting_weights(self) -> tuple[Tensor, ...]:
        return () if self.starts.weight_S is None else (self.starts.weight_S,)


def cases(graph: str) -> list[Case]:
    types = torch.float32, torch.float64
    single = [Case(GRAPHS[graph], shape, algebra, t) for shape in SHAPES for algebra in BILINEAR for t in types]
    return single + [
        Case(GRAPHS[graph], shape, algebra, t).with_many_starts()
        for shape in ((3, 3, 10), (2, 2, 64), (2, 1, 94))
        for algebra in BILINEAR
        for t in types
    ]


@pytest.mark.parametrize(("threads", "graph"), THREADED, indirect=["threads"])
@torch.no_grad()
def test_one_pass_without_gradients_equals_the_plain_layer(graph: str, threads: int) -> None:
    for case in cases(graph):
        which = torch.arange(len(case.starts)) if len(case.relation) > 1 else None
        assert_alike(case.fused(case.x, case.relation, which), case.plain(case.x))
        assert_alike(case.fused(None, case.relation, which), case.plain(case.initial()))


@pytest.mark.parametrize(("threads", "graph"), THREADED, indirect=["threads"])
def test_layer_with_gradients_equals_the_plain_layer(graph: str, threads: int) -> None:
    for case in cases(graph):
        wanted = case.plain(case.x)
        found = layer_with_gradients(case.edges, case.x, case.relation, case.starts, case.boundary, case.weights)
        compare(case, found, wanted, (case.x, case.relation, case.boundary, *case.starting_weights()))


@pytest.mark.parametrize("graph", GRAPHS)
def test_first_layer_equals_the_plain_layer_on_initial_states(graph: str) -> None:
    for case in cases(graph):
        wanted = case.plain(case.initial())
        found = first_layer(case.edges, case.relation, case.starts, case.boundary, case.weights)
        compare(case, found, wanted, (case.relation, case.boundary, *case.starting_weights()))


def compare(case: Case, found: Tensor, wanted: Tensor, inputs: tuple[Tensor, ...]) -> None:
    assert_alike(found, wanted)
    gradient = torch.randn_like(wanted)
    variables = (*inputs, *case.weights[:4])
    for name, a, b in zip(
        ("x, relation or boundary", *["input"] * (len(inputs) - 1), *case.weights._fields),
        torch.autograd.grad(found, variables, gradient, materialize_grads=True),
        torch.autograd.grad(wanted, variables, gradient, materialize_grads=True),
        strict=False,
    ):
        scale = (3e-4 if b.dtype == torch.float32 else 1e-11) * (b.abs().amax() + 1 if b.numel() else 1)
        assert a.shape == b.shape and bool(((a - b).abs() <= scale).all()), name


@torch.no_grad()
def test_queries_with_one_relation_share_its_table() -> None:
    case = Case(GRAPHS["ordinary"], (5, 2, 64), "complex", torch.float64)
    which = torch.tensor([1, 0, 0, 1, 1])
    shared = case.fused(case.x, case.relation, which)
    assert torch.equal(shared, case.fused(case.x, case.relation[which], torch.arange(5)))


@torch.no_grad()
def test_relation_tables_may_lie_anywhere() -> None:
    case, which = Case(GRAPHS["ordinary"], (5, 2, 64), "complex", torch.float64), torch.tensor([1, 0, 0, 1, 1])
    wanted = case.fused(case.x, case.relation, which)
    apart = [table.clone() for table in case.relation]
    job = LayerJob(apart, case.weights, torch.empty_like(case.x))
    assert torch.equal(layers_forward(case.edges, case.x, [job], which, case.starts, case.boundary), wanted)
    fewer = job._replace(tables=apart[:1], out_BND=torch.empty_like(case.x))
    with pytest.raises(ValueError, match="as many relation tables as the first"):
        layers_forward(case.edges, case.x, [job, fewer], which, case.starts, case.boundary)
    other = job._replace(tables=[apart[0], apart[1][1:].contiguous()])
    with pytest.raises(ValueError, match="relation table: wanted"):
        layers_forward(case.edges, case.x, [other], which, case.starts, case.boundary)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("begins", ["initial states", "given states"])
@torch.no_grad()
def test_layers_in_one_call_equal_one_call_each(count: int, begins: str) -> None:
    cases = [Case(GRAPHS["ordinary"], (3, 3, 64), "complex", torch.float32) for _ in range(count)]
    first, which = cases[0], torch.arange(3)
    for case in cases:
        case.layer.linear.weight.normal_(0, 0.2)
    x = None if begins == "initial states" else first.x
    outs = [torch.empty_like(first.x) for _ in range(2)]
    jobs = [LayerJob(case.relation * (i + 1), case.weights, outs[i % 2]) for i, case in enumerate(cases)]
    found = layers_forward(first.edges, x, jobs, which, first.starts, first.boundary).clone()
    for i, case in enumerate(cases):
        case.starts, case.boundary = first.starts, first.boundary
        x = case.fused(x, case.relation * (i + 1), which)
    assert x is not None and torch.equal(found, x)


@pytest.mark.parametrize("begins", ["initial states", "given states"])
@torch.no_grad()
def test_more_queries_than_a_cache_holds_give_what_each_gives_alone(begins: str) -> None:
    node = np.arange(9000)  # two states of all nodes are larger than the cache of a thread
    edges = Edges.of_triples(np.stack([node, node % 2, (7 * node + 1) % 9000], axis=1), 9000, 2)
    cases = [Case(edges, (5, 2, 64), "complex", torch.float32) for _ in range(3)]
    for case in cases:
        case.layer.linear.weight.normal_(0, 0.2)
    first, which = cases[0], torch.tensor([1, 0, 0, 1, 1])

    def through(queries: slice) -> Tensor:
        x = None if begins == "initial states" else first.x[queries]
        outs = [torch.empty_like(first.x[queries]) for _ in range(3)]
        jobs = [LayerJob(case.relation, case.weights, out) for case, out in zip(cases, outs, strict=True)]
        return layers_forward(edges, x, jobs, which[queries], first.starts[queries], first.boundary[queries])

    together = through(slice(0, 5))
    assert torch.equal(together, torch.cat([through(slice(b, b + 1)) for b in range(5)]))


def test_states_need_not_be_dense() -> None:
    case = Case(GRAPHS["ordinary"], (2, 1, 64), "complex", torch.float64)
    strided = case.x.mT.contiguous().mT
    assert not strided.is_contiguous()
    for with_gradients in (True, False):
        with torch.set_grad_enabled(with_gradients):
            found = case.layer(case.edges, strided, case.relation, case.starts, case.boundary)
            assert_alike(found, case.plain(case.x))


@torch.no_grad()
def test_a_diverged_state_stays_visible() -> None:
    case = Case(GRAPHS["ordinary"], (1, 1, 64), "real", torch.float32)
    x = case.x.detach().clone()
    x[0, 7, 3] = torch.nan
    found = case.fused(x, case.relation, None)
    assert found[0, 7].isnan().all()


@torch.no_grad()
def test_a_layer_refuses_to_write_over_its_states_and_ids_out_of_range() -> None:
    case = Case(GRAPHS["ordinary"], (2, 2, 64), "real", torch.float32)
    which, out = torch.arange(2), torch.empty_like(case.x)
    rest = which, case.starts, case.boundary
    for x, results in ((case.x, [case.x]), (case.x, [out, out]), (None, [out, out])):
        jobs = [LayerJob(case.relation, case.weights, result) for result in results]
        with pytest.raises(ValueError, match="over its states"):
            layers_forward(case.edges, x, jobs, *rest)
    with pytest.raises(ValueError, match="which: wanted 2 ids below 2"):
        case.fused(None, case.relation, which - 1)
    none, two = torch.tensor([0, 0, 0]), torch.tensor([0, 2, 2])
    for wrong in (
        Starts.single(which + 59),
        Starts.single(which - 1),
        Starts.single(torch.arange(3)),
        Starts(torch.tensor([4, 4]), None, two),
        Starts(torch.tensor([5, 4]), None, two),
        Starts(torch.tensor([5]), None, none),
        Starts(torch.tensor([4, 5]), torch.ones(1), two),
        Starts(torch.tensor([4, 5]), None, torch.tensor([0, 3, 2])),
    ):
        case.starts = wrong
        with pytest.raises(
            ValueError, match="starts: wanted those of 2 queries, each with ascending distinct ids below 60"
        ):
            case.fused(None, case.relation, which)


@torch.no_grad()
def test_layers_refuse_tensors_of_another_shape_or_type() -> None:
    case = Case(GRAPHS["ordinary"], (2, 2, 64), "real", torch.float32)
    which, out = torch.arange(2), torch.empty_like(case.x)
    good = LayerJob(case.relation, case.weights, out)
    bad = [
        ("relation tables", good._replace(tables=case.relation[:, 1:])),
        ("norm bias", good._replace(weights=case.weights._replace(norm_bias=case.weights.norm_bias.double()))),
        ("result", LayerJob(case.relation, case.weights, out[:, :-1])),
        ("must be dense", LayerJob(case.relation, case.weights, out.mT.contiguous().mT)),
    ]
    for complaint, job in bad:
        with pytest.raises(ValueError, match=complaint):
            layers_forward(case.edges, case.x, [job], which, case.starts, case.boundary)
