"""Propagation and a whole layer of one query against a dense GEMM of the layer's linear map: the unit of a machine.

The engine goes through the graph several times in a row, as an encoder does. All threads share the query; a batch with
a query for each thread, as inference takes them, is measured beside. The unit is one product, taken in turns with all
else; the same product at once again, its rows now in the caches, is told beside. The bounds: the GEMM rate of large
square matrices, and the time to gather the same rows of the same graph when all edges have one type, so that almost
nothing but reading rows is left.

B queries, N nodes, R edge types, D channels.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from gamma_kg.bench.timing import BestTimes, Task, best_times, threads
from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import native, propagate
from gamma_kg.kernels.native.layers import LayerJob, layers_forward
from gamma_kg.kernels.native.loading import empty_states
from gamma_kg.kernels.reference import propagate_reference
from gamma_kg.nn.layer import RelationalLayer

ALGEBRAS = ("real", "complex", "split-complex", "dual")
# How often in a row the engine goes through the graph: the layers of an encoder behind its first.
LAYERS = 5
DENSE = ("unit", "unit again", "large GEMM")
# How the names of tasks with a query for each thread begin.
BATCH = "a query per thread,"


class LayerTimes:
    """Seconds per query: the unit, the gather, and of each algebra a whole layer, propagation forward and backward."""

    def __init__(self, edges: EdgeGroups, dim: int, num_threads: int) -> None:
        self.num_threads = num_threads
        with torch.no_grad():
            self.times = BestTimes(layer_tasks(edges, dim, num_threads))

    def measure(self, rounds: int) -> None:
        """So many rounds more."""
        with torch.no_grad(), threads(self.num_threads):
            self.times.measure(rounds)

    @property
    def seconds(self) -> dict[str, float]:
        return {name: seconds / passes_in(name, self.num_threads) for name, seconds in self.times.seconds.items()}


def passes_in(name: str, num_threads: int) -> int:
    """How often a task goes through the graph: once for each of its queries and layers."""
    return 1 if name in DENSE else LAYERS * (num_threads if name.startswith(BATCH) else 1)


def layer_tasks(edges: EdgeGroups, dim: int, num_threads: int) -> dict[str, Task]:
    """What is measured, on random states."""
    torch.manual_seed(0)
    rows, weight = torch.randn(edges.num_nodes, 2 * dim), torch.randn(2 * dim, dim)
    product, large = torch.empty(edges.num_nodes, dim), torch.randn(1024, 1024)
    unit = partial(torch.mm, rows, weight, out=product)
    tasks: dict[str, Task] = dict(zip(DENSE, (unit, unit, lambda: large @ large), strict=True))
    relation_1RD = torch.randn(1, edges.num_types, dim)
    x_1ND, *targets = (random_states(1, edges.num_nodes, dim) for _ in range(3))
    gradient, one_type = torch.randn_like(x_1ND), merged_types(edges)
    for name in ALGEBRAS:
        tasks |= forward_tasks(name, edges, x_1ND, relation_1RD, targets)
        tasks[f"{name} backward"] = in_a_row(backward_task(edges, x_1ND, relation_1RD, gradient, name))
    tasks["gather"] = in_a_row(partial(propagate, one_type, x_1ND, relation_1RD[:, :1], "real"))
    if num_threads > 1:
        x_BND, *targets = (random_states(num_threads, edges.num_nodes, dim) for _ in range(3))
        batch = forward_tasks("complex", edges, x_BND, relation_1RD, targets)
        tasks |= {f"{BATCH} {name}": task for name, task in batch.items()}
    return tasks


def forward_tasks(
    algebra: str, edges: EdgeGroups, x_BND: Tensor, relation_1RD: Tensor, targets: list[Tensor]
) -> dict[str, Task]:
    """Whole layers, and propagation alone."""
    B, _, D = x_BND.shape
    layers = [RelationalLayer(D, algebra) for _ in range(LAYERS)]
    starts, boundary_BD = Starts.single(torch.randint(edges.num_nodes, (B,))), torch.randn(B, D)
    return {
        f"{algebra} layer": layers_task(edges, x_BND, relation_1RD, starts, boundary_BD, layers, targets),
        f"{algebra} forward": in_a_row(partial(propagate, edges, x_BND, relation_1RD, algebra)),
    }


def in_a_row(task: Task) -> Task:
    """The task, as often as an encoder has layers."""

    def repeated() -> None:
        for _ in range(LAYERS):
            task()

    return repeated


def layers_task(
    edges: EdgeGroups,
    x: Tensor,
    relation: Tensor,
    starts: Starts,
    boundary: Tensor,
    layers: list[RelationalLayer],
    targets: list[Tensor],
) -> Task:
    """Layers in a row, as the encoder runs them: in one native call where there is a native module."""

    def fused() -> None:
        jobs = [LayerJob(relation, layer.weights(), targets[i % 2]) for i, layer in enumerate(layers)]
        layers_forward(edges, x, jobs, None, starts, boundary)

    def plain() -> None:
        states = x
        for layer in layers:
            states = layer(edges, states, relation, starts, boundary)

    return plain if native.module() is None else fused


def random_states(queries: int, num_nodes: int, dim: int) -> Tensor:
    """States, in memory as the encoder takes it."""
    return empty_states(torch.empty(0), queries, num_nodes, dim).normal_()


def measure_plain(edges: EdgeGroups, dim: int, rounds: int, num_threads: int) -> dict[str, float]:
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


def backward_task(edges: EdgeGroups, x: Tensor, relation: Tensor, gradient: Tensor, algebra: str) -> Task:
    """The backward pass alone: the forward pass is made once, here."""
    with torch.enable_grad():
        x, relation = x.detach().requires_grad_(), relation.detach().requires_grad_()
        out = propagate(edges, x, relation, algebra)
    return lambda: torch.autograd.grad(out, (x, relation), gradient, retain_graph=True)


def merged_types(edges: EdgeGroups) -> EdgeGroups:
    """The same neighbours with a single edge type: one group per node."""
    return EdgeGroups(
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
