"""A renumbered graph is the same graph: every edge is there under its new name, and sums and scores stay the same."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from odd_graphs import BILINEAR, GRAPHS, assert_alike, random_graph
from torch import Tensor

import gamma_kg.predicting.inference as inference
from gamma_kg.demo import demo_graph
from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.kernels import Backend, backend_of, propagate
from gamma_kg.kernels.backend import plain_torch
from gamma_kg.kernels.native.edge_arrays import renumbered
from gamma_kg.kernels.prepared import PreparedEdges
from gamma_kg.predicting.gamma import Gamma


def renumber(edges: Edges) -> tuple[PreparedEdges, Tensor]:
    new = renumbered(edges)
    assert new.place_N is not None
    return new, new.place_N


def named(edges: EdgeGroups, name: Tensor) -> list[tuple[int, ...]]:
    """All edges with `name` of both ends, sorted."""
    node, type_, neighbour = edges.slice(0, edges.num_edges)
    return sorted(map(tuple, torch.stack((name[node], type_, name[neighbour]), dim=1).tolist()))


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_edges_are_the_same_under_their_new_names(graph: str) -> None:
    edges = GRAPHS[graph]
    new, place = renumber(edges)
    assert sorted(place.tolist()) == list(range(edges.num_nodes))
    assert named(new, torch.arange(edges.num_nodes)) == named(edges, place)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_groups_of_a_node_grow(graph: str) -> None:
    edges, _ = renumber(GRAPHS[graph])
    size, node = edges.group_ptr.diff(), edges.group_node
    same = node[1:] == node[:-1]
    assert bool((size[1:][same] >= size[:-1][same]).all())


def test_nodes_that_share_type_and_hub_follow_each_other() -> None:
    # Two stars with their leaves' numbers interleaved; the hubs are 0 and 1.
    triples = [[hub, 0, leaf] for leaf in range(2, 22) for hub in (leaf % 2,)]
    _, place = renumber(Edges.of_triples(np.array(triples), 22, 1))
    evens, odds = place[2::2].sort().values, place[3::2].sort().values
    assert torch.equal(evens.diff(), torch.ones(9, dtype=torch.int64))
    assert torch.equal(odds.diff(), torch.ones(9, dtype=torch.int64))


@pytest.mark.parametrize("algebra", BILINEAR)
def test_propagation_gives_the_same_sums_and_gradients(algebra: str) -> None:
    edges = random_graph(5, 80, 3, 500)
    new, place = renumber(edges)
    x = torch.randn(2, 80, 64, dtype=torch.float64, requires_grad=True)
    relation = torch.randn(2, 6, 64, dtype=torch.float64, requires_grad=True)
    old_sum = propagate(edges, x, relation, algebra)
    moved = torch.empty_like(x).index_copy(1, place, x)
    new_sum = propagate(new, moved, relation, algebra)[:, place]
    assert_alike(new_sum, old_sum)
    gradient = torch.randn_like(old_sum)
    for found, wanted in zip(
        torch.autograd.grad(new_sum, (x, relation), gradient),
        torch.autograd.grad(old_sum, (x, relation), gradient),
        strict=True,
    ):
        assert_alike(found, wanted)


def test_scores_and_branch_weights_do_not_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    kg, gamma = demo_graph(), Gamma.from_preset("gamma")
    source, relation = kg.triples[:7, 0], kg.triples[:7, 1]

    def answers() -> list[tuple[Tensor, Tensor]]:
        cache = inference.RelationCache()
        batches = inference.score_batches(gamma.model, kg, source, relation, cache)
        return [(b.scores.score_BC, b.scores.weight_BCK) for b in batches if b.scores.weight_BCK is not None]

    found = answers()
    backend = backend_of(torch.device("cpu"))
    as_they_are = Backend(backend.device).prepare(kg.edges)
    assert as_they_are.place_N is None and backend.prepare(kg.edges).place_N is not None
    monkeypatch.setattr(backend, "prepare", lambda edges: as_they_are)
    wanted = answers()
    assert found and len(found) == len(wanted)
    for new, old in zip(found, wanted, strict=True):
        torch.testing.assert_close(new[0], old[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(new[1], old[1], rtol=1e-4, atol=1e-4)


def test_it_is_made_once_and_goes_with_its_graph() -> None:
    edges = random_graph(6, 20, 2, 60)
    backend = backend_of(torch.device("cpu"))
    first = weakref.ref(backend.prepare(edges))
    assert backend.prepare(edges) is first()
    del edges
    gc.collect()
    assert first() is None


def test_plain_torch_takes_the_graph_as_it_is() -> None:
    edges = random_graph(7, 20, 2, 60)
    with plain_torch() as backend:
        prepared = backend.prepare(edges)
    assert prepared.place_N is None and prepared.neighbour is edges.neighbour
