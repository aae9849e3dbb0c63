from __future__ import annotations

import numpy as np
import pytest
import torch

from gamma_kg.graph.sampling import SourceGraph
from gamma_kg.training.batch import Batch
from gamma_kg.training.config import Stage
from gamma_kg.training.draws import BatchStream, Cursor, GraphDrawer

SMALL = Stage(sampler="subgraph", batch_size=3, batches_per_draw=2, negatives=4, entities=(10, 20))
LARGE = Stage(sampler="subgraph", batch_size=5, batches_per_draw=3, negatives=4, entities=(30, 50))


def stage_at(batches: int) -> int:
    return int(batches >= 5)


def stream(source: SourceGraph, **options: object) -> BatchStream:
    return BatchStream(GraphDrawer([source], (SMALL, LARGE), seed=1), stage_at, **options)


def same(first: Batch, second: Batch) -> bool:
    left, right = first.tensors(), second.tensors()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (2, 4)])
def test_background_workers_give_the_same_batches_as_none(source: SourceGraph, workers: int, prefetch: int) -> None:
    plain, ahead = stream(source, workers=0), stream(source, workers=workers, prefetch=prefetch)
    for _ in range(14):
        assert same(plain.next(), ahead.next())
    ahead.close()


@pytest.mark.parametrize("taken", [0, 1, 2, 5, 6, 9])
def test_a_stream_goes_on_from_any_cursor(source: SourceGraph, taken: int) -> None:
    first = stream(source, workers=0)
    for _ in range(taken):
        first.next()
    second = stream(source, workers=0, start=first.cursor, batches_done=taken)
    for _ in range(6):
        assert same(first.next(), second.next())
        assert first.cursor == second.cursor


def test_stages_change_at_the_first_draw_after_their_time(source: SourceGraph) -> None:
    batches = stream(source, workers=0)
    sizes = [len(batches.next()) for _ in range(12)]
    assert sizes == [3] * 6 + [5] * 6
    assert batches.cursor == Cursor(draw=5, stage=1, batch=0)


def test_ranks_draw_different_graphs(source: SourceGraph) -> None:
    first, second = (GraphDrawer([source], (SMALL,), seed=1, rank=rank).draw(0, 0)[0] for rank in range(2))
    assert not same(first, second)


def test_sources_are_drawn_in_proportion_to_their_triples_unless_weights_are_given() -> None:
    rng = np.random.default_rng(0)

    def ring(size: int) -> SourceGraph:
        ends = np.arange(size)
        return SourceGraph.build("ring", np.column_stack((ends, 0 * ends, rng.permutation(size))), size, 1)

    def share_of_large(stage: Stage) -> float:
        drawer = GraphDrawer([ring(300), ring(100)], (stage,), seed=0)
        return float(np.mean([drawer.draw(number, 0)[0].edges.num_nodes == 300 for number in range(200)]))

    stage = Stage(sampler="full", batch_size=1, negatives=1)
    assert 0.65 < share_of_large(stage) < 0.85
    assert share_of_large(stage.with_options(source_weights=(0.0, 1.0))) == 0


def test_an_error_in_a_worker_reaches_the_trainer(source: SourceGraph) -> None:
    broken = stream(source, workers=1)
    broken.drawer.sources = []
    with pytest.raises((ValueError, IndexError)):
        for _ in range(20):
            broken.next()
    broken.close()
