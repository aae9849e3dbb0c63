"""The stream of batches: graphs are drawn and cut in the background, always the same ones for the same seed.

A draw is one graph (a training graph or a subgraph of one) and the few batches taken from it. Its content follows from
(seed, process, number of the draw, phase) alone, so a run can be taken up again at any batch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np
import torch

from gamma_kg.graph.sampling import IntArray, RuleWorlds, Subgraph, TrainingGraph, subgraph_of
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.growth import grow as walk
from gamma_kg.training.batch import Batch, PreparedGraph, make_batch
from gamma_kg.training.config import Phase


@dataclass(frozen=True)
class Cursor:
    """Where in the stream we are: the next batch is number `batch` of draw number `draw`, made for `phase`."""

    draw: int = 0
    phase: int = 0
    batch: int = 0


class GraphDrawer:
    """Makes draws. Whole graphs are built once and shared by all draws of them."""

    def __init__(
        self,
        graphs: Sequence[TrainingGraph | RuleWorlds],
        phases: Sequence[Phase],
        seed: int,
        process: int = 0,
        relation_graph: str = "meetings",
        with_whole: bool = False,
    ) -> None:
        self.graphs, self.phases, self.seed, self.process = graphs, phases, seed, process
        self.relation_graph, self.with_whole = relation_graph, with_whole
        self._whole: dict[int, PreparedGraph] = {}
        self._lock = Lock()

    def draw(self, number: int, phase_number: int) -> list[Batch]:
        """The batches of one draw."""
        phase = self.phases[phase_number]
        rng = np.random.default_rng([self.seed, self.process, number])
        weights = np.asarray(phase.graph_weights or [s.num_triples for s in self.graphs], dtype=float)
        chosen = int(rng.choice(len(self.graphs), p=weights / weights.sum()))
        chosen_graph = self.graphs[chosen]
        if isinstance(chosen_graph, TrainingGraph) and _takes_whole(phase, chosen_graph, rng):
            graph = self._whole_graph(chosen, chosen_graph)
            asked = None
        else:
            subgraph, asked = self._subgraph(chosen, phase, rng)
            if asked is not None and phase.whole_relations and isinstance(chosen_graph, TrainingGraph):
                graph = self._whole_graph(chosen, chosen_graph).part(subgraph, self.with_whole)
            else:
                graph = PreparedGraph.build(
                    subgraph.triples,
                    subgraph.num_entities,
                    subgraph.num_relations,
                    subgraph.hidden,
                    self.relation_graph,
                )
        return [
            make_batch(graph, phase.batch_size, phase.negatives, phase.max_answers, rng, asked, phase.near)
            for _ in range(phase.batches_per_draw)
        ]

    def _subgraph(self, chosen: int, phase: Phase, rng: np.random.Generator) -> tuple[Subgraph, IntArray | None]:
        """A subgraph of a graph, and the entities to ask about; None: any."""
        graph = self.graphs[chosen]
        if not phase.walk_chance or rng.random() >= phase.walk_chance or not isinstance(graph, TrainingGraph):
            return graph.sample(phase.subgraph, rng), None
        low, high = np.log(phase.walk_triples)
        count = int(rng.integers(phase.seeds[0], phase.seeds[1] + 1))
        starts = np.unique(graph.triples[rng.integers(graph.num_triples, size=count)][:, rng.choice([0, 2])])
        around = Starts(torch.from_numpy(starts), None, torch.tensor([0, len(starts)]))
        near = walk(self._whole_graph(chosen, graph).edges, around, round(float(np.exp(rng.uniform(low, high)))))
        is_member = np.zeros(graph.num_entities, dtype=bool)
        is_member[near.entity_N.numpy()] = True
        subgraph = subgraph_of(graph, is_member, phase.subgraph, rng)
        asked = np.flatnonzero(np.isin(subgraph.entity, starts))
        return subgraph, asked if len(asked) else None

    def _whole_graph(self, chosen: int, graph: TrainingGraph) -> PreparedGraph:
        with self._lock:
            if chosen not in self._whole:
                self._whole[chosen] = PreparedGraph.build(
                    graph.triples, graph.num_entities, graph.num_relations, relation_graph=self.relation_graph
                )
            return self._whole[chosen]


def _takes_whole(phase: Phase, graph: TrainingGraph, rng: np.random.Generator) -> bool:
    if phase.sampler == "full" or not phase.whole_chance:
        return phase.sampler == "full"
    return rng.random() < phase.whole_chance and graph.num_triples <= phase.whole_triples


class BatchStream:
    """Batches one after the other. `phase_at(draw's first batch counted from the start)` says which phase is due."""

    def __init__(
        self,
        drawer: GraphDrawer,
        phase_at: Callable[[int], int],
        *,
        workers: int = 1,
        prefetch: int = 4,
        start: Cursor | None = None,
        batches_done: int = 0,
    ) -> None:
        self.drawer, self.phase_at, self.prefetch = drawer, phase_at, prefetch
        self.seconds_waited = 0.0
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="draw") if workers else None
        self._ahead: deque[tuple[int, int, Future[list[Batch]] | None]] = deque()
        self._cursor = start or Cursor(phase=phase_at(0))
        # The draw under the cursor keeps the phase it was made for; later ones are planned from where it ends.
        self._planned_draw = self._cursor.draw
        self._planned_batches = batches_done - self._cursor.batch
        self._plan(self._cursor.phase)
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
            self._cursor = Cursor(self._cursor.draw, self._cursor.phase, self._cursor.batch + 1)
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
        number, phase, future = self._ahead.popleft()
        started = time.perf_counter()
        batches = self.drawer.draw(number, phase) if future is None else future.result()
        self.seconds_waited += time.perf_counter() - started
        # Without workers nothing is built ahead; planning late lets the phase follow the clock closely.
        self._fill(self.prefetch if self._pool else 0)
        return batches

    def _fill(self, count: int) -> None:
        while len(self._ahead) < count:
            self._plan(self.phase_at(self._planned_batches))

    def _plan(self, phase: int) -> None:
        number = self._planned_draw
        future = self._pool.submit(self.drawer.draw, number, phase) if self._pool else None
        self._ahead.append((number, phase, future))
        self._planned_draw += 1
        self._planned_batches += self.drawer.phases[phase].batches_per_draw
