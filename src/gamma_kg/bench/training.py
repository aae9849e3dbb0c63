"""How long a training step takes, in units that do not depend on the machine.

The unit is one dense product of the entity layer's linear map for the same batch (B·N rows, 2D → D), measured in the
same run, alternating with the steps.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np
import torch

from gamma_kg.nn.config import preset
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.batch import Batch, PreparedGraph, make_batch
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.objective import batch_loss


@dataclass(frozen=True)
class StepTiming:
    """Seconds of a step (median) and of the unit, in this run."""

    forward: float
    backward: float
    gemm: float

    @property
    def seconds(self) -> float:
        return self.forward + self.backward

    @property
    def ratio(self) -> float:
        return self.seconds / self.gemm


def measure_step(
    preset_name: str = "gamma",
    *,
    num_entities: int = 1400,
    num_triples: int = 8000,
    num_relations: int = 100,
    batch_size: int = 16,
    negatives: int = 128,
    repeats: int = 5,
) -> StepTiming:
    """Time steps of the published loss on a random graph of the given size, with the threads torch has now."""
    batch = random_batch(num_entities, num_triples, num_relations, batch_size, negatives)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GammaModel(preset(preset_name)).train()
    config, dim = TrainConfig(), model.config.dim
    rows, weight = torch.randn(batch_size * num_entities, 2 * dim), torch.randn(dim, 2 * dim)
    forward, backward, gemm = [], [], []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        torch.nn.functional.linear(rows, weight)
        multiplied = time.perf_counter()
        loss, _ = batch_loss(model, batch, config)
        scored = time.perf_counter()
        loss.backward()
        done = time.perf_counter()
        model.zero_grad(set_to_none=True)
        gemm.append(multiplied - started)
        forward.append(scored - multiplied)
        backward.append(done - scored)
    # The first round warms up caches and compiled parts.
    return StepTiming(*(statistics.median(times[1:]) for times in (forward, backward, gemm)))


def random_batch(num_entities: int, num_triples: int, num_relations: int, batch_size: int, negatives: int) -> Batch:
    """A batch on a graph with skewed degrees and relation sizes, as real ones have."""
    rng = np.random.default_rng(0)
    entity = (num_entities * rng.random((num_triples, 2)) ** 2).astype(np.int64)
    relation = (num_relations * rng.random(num_triples) ** 2).astype(np.int64)
    triples = np.column_stack((entity[:, 0], relation, entity[:, 1]))
    graph = PreparedGraph.build(triples, num_entities, num_relations)
    return make_batch(graph, batch_size, negatives, 1, rng)
