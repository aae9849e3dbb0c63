from __future__ import annotations

import numpy as np
import pytest
import torch

from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.training.batch import Batch
from gamma_kg.training.config import Phase
from gamma_kg.training.draws import BatchStream, Cursor, GraphDrawer

SMALL = Phase(sampler="subgraph", batch_size=3, batches_per_draw=2, negatives=4, entities=(10, 20))
LARGE = Phase(sampler="subgraph", batch_size=5, batches_per_draw=3, negatives=4, entities=(30, 50))


def phase_at(batches: int) -> int:
    return int(batches >= 5)


def stream(training_graph: TrainingGraph, **options: object) -> BatchStream:
    return BatchStream(GraphDrawer([training_graph], (SMALL, LARGE), seed=1), phase_at, **options)


def same(first: Batch, second: Batch) -> bool:
    left, right = first.tensors(), second.tensors()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (2, 4)])
def test_background_workers_give_the_same_batches_as_none(
    training_graph: TrainingGraph, workers: int, prefetch: int
) -> None:
    plain, ahead = stream(training_graph, workers=0), stream(training_graph, workers=workers, prefetch=prefetch)
    for _ in range(14):
        assert same(plain.next(), ahead.next())
    ahead.close()


@pytest.mark.parametrize("taken", [0, 1, 2, 5, 6, 9])
def test_a_stream_goes_on_from_any_cursor(training_graph: TrainingGraph, taken: int) -> None:
    first = stream(training_graph, workers=0)
    for _ in range(taken):
        first.next()
    second = stream(training_graph, workers=0, start=first.cursor, batches_done=taken)
    for _ in range(6):
        assert same(first.next(), second.next())
        assert first.cursor == second.cursor


def test_phases_change_at_the_first_draw_after_their_time(training_graph: TrainingGraph) -> None:
    batches = stream(training_graph, workers=0)
    sizes = [len(batches.next()) for _ in range(12)]
    assert sizes == [3] * 6 + [5] * 6
    assert batches.cursor == Cursor(draw=5, phase=1, batch=0)


def test_processes_draw_different_graphs(training_graph: TrainingGraph) -> None:
    first, second = (
        GraphDrawer([training_graph], (SMALL,), seed=1, process=process).draw(0, 0)[0] for process in range(2)
    )
    assert not same(first, second)


def test_training_graphs_are_drawn_in_proportion_to_their_triples_unless_weights_are_given() -> None:
    rng = np.random.default_rng(0)

    def ring(size: int) -> TrainingGraph:
        ends = np.arange(size)
        return TrainingGraph.build("ring", np.column_stack((ends, 0 * ends, rng.permutation(size))), size, 1)

    def share_of_large(phase: Phase) -> float:
        drawer = GraphDrawer([ring(300), ring(100)], (phase,), seed=0)
        return float(np.mean([drawer.draw(number, 0)[0].edges.num_nodes == 300 for number in range(200)]))

    phase = Phase(sampler="full", batch_size=1, negatives=1)
    assert 0.65 < share_of_large(phase) < 0.85
    assert share_of_large(phase.with_options(graph_weights=(0.0, 1.0))) == 0


def test_neighbourhoods_of_a_walk_are_asked_about_their_own_starts(training_graph: TrainingGraph) -> None:
    phase = SMALL.with_options(walk_chance=1.0, walk_triples=(15, 15), seeds=(1, 1), drop_chance=0.0, batch_size=6)
    drawer = GraphDrawer([training_graph], (phase,), seed=3)
    for number in range(20):
        for batch in drawer.draw(number, 0):
            assert len(batch.source_B.unique()) == 1, "one start was drawn, all queries begin there"
            assert batch.edges.num_edges <= 2 * 15
    apart = GraphDrawer([training_graph], (phase.with_options(walk_chance=0.0),), seed=3).draw(0, 0)[0]
    assert len(apart.source_B.unique()) > 1


def test_an_error_in_a_worker_reaches_the_trainer(training_graph: TrainingGraph) -> None:
    broken = stream(training_graph, workers=1)
    broken.drawer.graphs = []
    with pytest.raises((ValueError, IndexError)):
        for _ in range(20):
            broken.next()
    broken.close()


def test_a_walk_may_see_its_relations_as_the_whole_graph_does(training_graph: TrainingGraph) -> None:
    walk = SMALL.with_options(walk_chance=1.0, walk_triples=(3, 3), seeds=(1, 1), drop_chance=0.0, batch_size=6)
    drawer = GraphDrawer([training_graph], (walk, walk.with_options(whole_relations=True)), seed=3)
    whole = GraphDrawer([training_graph], (Phase(batch_size=2, negatives=4),), seed=3).draw(0, 0)[0]
    fewer = 0
    for number in range(12):
        own, seen_whole = (drawer.draw(number, phase)[0] for phase in range(2))
        # The same neighbourhood and queries, under the numbers that the whole graph gives the relations.
        assert own.edges.num_nodes == seen_whole.edges.num_nodes
        assert torch.equal(own.source_B, seen_whole.source_B)
        assert torch.equal(own.edges.neighbour, seen_whole.edges.neighbour)
        assert seen_whole.relation_graph.num_nodes == seen_whole.edges.num_types == whole.relation_graph.num_nodes
        assert torch.equal(seen_whole.relation_graph.neighbour, whole.relation_graph.neighbour)
        fewer += own.relation_graph.num_nodes < seen_whole.relation_graph.num_nodes
    assert fewer  # else this would not tell the two apart


def test_some_draws_take_the_whole_of_a_graph_that_is_not_too_large(training_graph: TrainingGraph) -> None:
    some = SMALL.with_options(whole_chance=0.5)
    few = some.with_options(whole_triples=training_graph.num_triples - 1)
    drawer = GraphDrawer([training_graph], (some, few), seed=3)
    sizes = [[drawer.draw(number, phase)[0].edges.num_nodes for number in range(20)] for phase in range(2)]
    assert 3 <= sizes[0].count(training_graph.num_entities) <= 17
    assert max(sizes[1]) <= SMALL.entities[1]
