"""Odd and ordinary graphs for the kernels, and the closeness asked of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges

BILINEAR = ("real", "complex", "split-complex", "dual")


def edges_of(triples: np.ndarray, num_nodes: int, num_relations: int) -> Edges:
    """Edges of triples and their inverses; repeated triples stay."""
    return Edges.of_triples(np.asarray(triples, dtype=np.int64).reshape(-1, 3), num_nodes, num_relations)


def random_graph(seed: int, num_nodes: int, num_relations: int, num_triples: int, star: bool = False) -> Edges:
    """Random triples; in a star every one begins at node 0."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(limit, size=num_triples) for limit in (num_nodes, num_relations, num_nodes)]
    if star:
        columns[0][:] = 0
    return edges_of(np.column_stack(columns), num_nodes, num_relations)


GRAPHS = {
    "empty": edges_of(np.zeros((0, 3)), 4, 2),
    "one node, no edge": edges_of(np.zeros((0, 3)), 1, 1),
    "one edge": edges_of(np.array([[0, 0, 1]]), 3, 1),
    "one loop": edges_of(np.array([[1, 0, 1]]), 2, 1),
    "repeated edges": edges_of(np.array([[0, 1, 2]] * 5 + [[2, 0, 0]] * 3), 3, 2),
    "ordinary": random_graph(1, 60, 4, 300),
    "huge degree": random_graph(2, 300, 2, 6_000, star=True),
    "dense": random_graph(3, 7, 2, 3_000),
    "past the second cache": random_graph(4, 2_500, 5, 4_000),  # rows are fetched ahead
}


def emptied(edges: Edges) -> Edges:
    """Half of the triples taken out with their inverses, as a training step does; many groups are left empty."""
    node, type_, neighbour = (ids[::2] for ids in edges.slice(0, edges.num_edges))
    inverse = edges.inverse.long()[type_]
    ends = torch.cat((node, neighbour)), torch.cat((type_, inverse)), torch.cat((neighbour, node))
    return edges.without(edges.find(*ends))


GRAPHS["emptied groups"] = emptied(GRAPHS["ordinary"])


def assert_alike(found: Tensor, wanted: Tensor) -> None:
    """Equal but for rounding, measured against the largest number that went into the sums."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    if wanted.numel():
        tolerance = (2e-6 if wanted.dtype == torch.float32 else 1e-13) * 50
        assert (found - wanted).abs().max() <= tolerance * (wanted.abs().max() + 1)


# Threads only matter where there is something to share.
THREADED = [(1, name) for name in GRAPHS] + [
    (2, name) for name in ("ordinary", "huge degree", "past the second cache", "emptied groups")
]
