"""Propagation and a whole layer of one query against a dense GEMM of the layer's linear map: the unit of a machine.

The bounds: the GEMM rate of large square matrices, and the time to gather the same rows of the same graph when all
edges have one type, so that almost nothing but reading rows is left. N nodes, R edge types, D channels.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from gamma_kg.bench.timing import Task, best_times, threads
from gamma_kg.graph.edges import Edges
from gamma_kg.kernels import native, propagate
from gamma_kg.kernels.fused import layers_forward
from gamma_kg.kernels.reference import propagate_reference
from gamma_kg.nn.layer import RelationalLayer

ALGEBRAS = ("real", "complex", "split-complex", "dual")
# Layers that go through one native call, as in an encoder; what is told is the time of one.
LAYERS = 4


def measure_layer(edges: Edges, dim: int, rounds: int, num_threads: int) -> dict[str, float]:
    """Seconds per query: unit, gather, and for each algebra propagation forward, backward and the whole layer."""
    torch.manual_seed(0)
    x_1ND, relation_1RD = random_states(edges.num_nodes, dim), torch.randn(1, edges.num_types, dim)
    source, boundary = torch.tensor([edges.num_nodes // 2]), torch.randn(1, dim)
    rows, weight = torch.randn(edges.num_nodes, 2 * dim), torch.randn(2 * dim, dim)
    product, large = torch.empty(edges.num_nodes, dim), torch.randn(1024, 1024)
    gradient, one_type = torch.randn_like(x_1ND), merged_types(edges)
    tasks: dict[str, Task] = {
        "unit": lambda: torch.mm(rows, weight, out=product),
        "large GEMM": lambda: large @ large,
        "gather": lambda: propagate(one_type, x_1ND, relation_1RD[:, :1], "real"),
    }
    targets = [random_states(edges.num_nodes, dim) for _ in range(2)]
    for name in ALGEBRAS:
        layers = [RelationalLayer(dim, name) for _ in range(LAYERS)]
        tasks[f"{name} forward"] = partial(propagate, edges, x_1ND, relation_1RD, name)
        tasks[f"{name} backward"] = backward_task(edges, x_1ND, relation_1RD, gradient, name)
        tasks[f"{name} layer"] = layers_task(edges, x_1ND, relation_1RD, source, boundary, layers, targets)
    with torch.no_grad(), threads(num_threads):
        times = best_times(tasks, rounds)
    return {name: seconds / LAYERS if name.endswith(" layer") else seconds for name, seconds in times.items()}


def layers_task(
    edges: Edges,
    x: Tensor,
    relation: Tensor,
    source: Tensor,
    boundary: Tensor,
    layers: list[RelationalLayer],
    targets: list[Tensor],
) -> Task:
    """Layers in a row, as the encoder runs them: in one native call where there is a native module."""

    def fused() -> None:
        stages = [layer.stage(relation, targets[i % 2]) for i, layer in enumerate(layers)]
        layers_forward(edges, x, stages, None, source, boundary, layers[0].algebra)

    def plain() -> None:
        states = x
        for layer in layers:
            states = layer(edges, states, relation, source, boundary)

    return plain if native.module() is None else fused


def random_states(num_nodes: int, dim: int) -> Tensor:
    """States of one query, in memory as the encoder takes it."""
    return native.empty_states(torch.empty(0), 1, num_nodes, dim).normal_()


def measure_plain(edges: Edges, dim: int, rounds: int, num_threads: int) -> dict[str, float]:
    """Seconds per query of the plain torch path, forward, and forward and backward."""
    torch.manual_seed(0)
    x = torch.randn(1, edges.num_nodes, dim, requires_grad=True)
    relation = torch.randn(1, edges.num_types, dim, requires_grad=True)

    def both() -> None:
        out = propagate_reference(edges, x, relation, "complex")
        torch.autograd.grad(out, (x, relation), torch.ones_like(out))

    with threads(num_threads):
        forward = best_times({"forward": lambda: propagate_reference(edges, x, relation, "complex")}, rounds)
        return forward | best_times({"forward and backward": both}, rounds)


def backward_task(edges: Edges, x: Tensor, relation: Tensor, gradient: Tensor, algebra: str) -> Task:
    """The backward pass alone: the forward pass is made once, here."""
    with torch.enable_grad():
        x, relation = x.detach().requires_grad_(), relation.detach().requires_grad_()
        out = propagate(edges, x, relation, algebra)
    return lambda: torch.autograd.grad(out, (x, relation), gradient, retain_graph=True)


def merged_types(edges: Edges) -> Edges:
    """The same neighbours with a single edge type: one group per node."""
    return Edges(
        num_nodes=edges.num_nodes,
        num_types=1,
        node_ptr=torch.arange(edges.num_nodes + 1),
        group_type=torch.zeros(edges.num_nodes, dtype=torch.int32),
        group_ptr=edges.group_ptr[edges.node_ptr].contiguous(),
        neighbour=edges.neighbour,
        inverse=torch.zeros(1, dtype=torch.int32),
    )


def copy_bandwidth(num_threads: int, rounds: int = 5) -> float:
    """Bytes per second read and written by a copy too large for the caches."""
    source = torch.ones(1 << 25)
    target = torch.empty_like(source)
    with threads(num_threads):
        seconds = best_times({"copy": lambda: target.copy_(source)}, rounds)["copy"]
    return 2 * source.numel() * source.element_size() / seconds
