"""The stream of batches: graphs are drawn and cut in the background, always the same ones for the same seed.

A draw is one graph (a whole source, or a piece of one) and the few batches taken from it. Its content follows from
(seed, rank, number of the draw, stage) alone, so a run can be taken up again at any batch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np

from gamma_kg.graph.sampling import RuleWorlds, SourceGraph
from gamma_kg.training.batch import Batch, TrainGraph, make_batch
from gamma_kg.training.config import Stage


@dataclass(frozen=True)
class Cursor:
    """Where in the stream we are: the next batch is number `batch` of draw number `draw`, made for `stage`."""

    draw: int = 0
    stage: int = 0
    batch: int = 0


class GraphDrawer:
    """Makes draws. Whole graphs are built once and shared by all draws of them."""

    def __init__(
        self,
        sources: Sequence[SourceGraph | RuleWorlds],
        stages: Sequence[Stage],
        seed: int,
        rank: int = 0,
        relation_graph: str = "meetings",
    ) -> None:
        self.sources, self.stages, self.seed, self.rank = sources, stages, seed, rank
        self.relation_graph = relation_graph
        self._whole: dict[int, TrainGraph] = {}
        self._lock = Lock()

    def draw(self, number: int, stage_number: int) -> list[Batch]:
        """The batches of one draw."""
        stage = self.stages[stage_number]
        rng = np.random.default_rng([self.seed, self.rank, number])
        weights = np.asarray(stage.source_weights or [s.num_triples for s in self.sources], dtype=float)
        chosen = int(rng.choice(len(self.sources), p=weights / weights.sum()))
        source = self.sources[chosen]
        if stage.sampler == "full" and isinstance(source, SourceGraph):
            graph = self._whole_graph(chosen, source)
        else:
            piece = source.sample(stage.subgraph, rng)
            graph = TrainGraph.build(
                piece.triples, piece.num_entities, piece.num_relations, piece.hidden, self.relation_graph
            )
        return [
            make_batch(graph, stage.batch_size, stage.negatives, stage.max_answers, rng)
            for _ in range(stage.batches_per_draw)
        ]

    def _whole_graph(self, chosen: int, source: SourceGraph) -> TrainGraph:
        with self._lock:
            if chosen not in self._whole:
                self._whole[chosen] = TrainGraph.build(
                    source.triples, source.num_entities, source.num_relations, relation_graph=self.relation_graph
                )
            return self._whole[chosen]


class BatchStream:
    """Batches one after the other. `stage_at(draw's first batch counted from the start)` says which stage is due."""

    def __init__(
        self,
        drawer: GraphDrawer,
        stage_at: Callable[[int], int],
        *,
        workers: int = 1,
        prefetch: int = 4,
        start: Cursor | None = None,
        batches_done: int = 0,
    ) -> None:
        self.drawer, self.stage_at, self.prefetch = drawer, stage_at, prefetch
        self.seconds_waited = 0.0
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="draw") if workers else None
        self._ahead: deque[tuple[int, int, Future[list[Batch]] | None]] = deque()
        self._cursor = start or Cursor(stage=stage_at(0))
        # The draw under the cursor keeps the stage it was made for; later ones are planned from where it ends.
        self._planned_draw = self._cursor.draw
        self._planned_batches = batches_done - self._cursor.batch
        self._plan(self._cursor.stage)
        self._current: list[Batch] | None = None

    @property
    def cursor(self) -> Cursor:
        """Where the next batch comes from; enough to go on in another process."""
        return self._cursor

    def next(self) -> Batch:
        """The next batch; waits where it is not built yet."""
        if self._current is None:
            self._current = self._take()
        batch = self._current[self._cursor.batch]
        if self._cursor.batch + 1 < len(self._current):
            self._cursor = Cursor(self._cursor.draw, self._cursor.stage, self._cursor.batch + 1)
        else:
            self._current = None
            self._fill(1)
            self._cursor = Cursor(self._ahead[0][0], self._ahead[0][1])
        return batch

    def close(self) -> None:
        """Stop building."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _take(self) -> list[Batch]:
        number, stage, future = self._ahead.popleft()
        started = time.perf_counter()
        batches = self.drawer.draw(number, stage) if future is None else future.result()
        self.seconds_waited += time.perf_counter() - started
        # Without workers nothing is built ahead; planning late lets the stage follow the clock closely.
        self._fill(self.prefetch if self._pool else 0)
        return batches

    def _fill(self, count: int) -> None:
        while len(self._ahead) < count:
            self._plan(self.stage_at(self._planned_batches))

    def _plan(self, stage: int) -> None:
        number = self._planned_draw
        future = self._pool.submit(self.drawer.draw, number, stage) if self._pool else None
        self._ahead.append((number, stage, future))
        self._planned_draw += 1
        self._planned_batches += self.drawer.stages[stage].batches_per_draw
