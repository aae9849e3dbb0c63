"""What each process of test_processes.py runs: python process_program.py MODE FOLDER, under torchrun's environment.

train: gradients of a batch, a whole run, and a run in which process 1 dies. resume: goes on with the latter.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamma_kg.errors import GammaError
from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.machine.processes import Processes, join_processes
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.batch import PreparedGraph, make_batch
from gamma_kg.training.config import Phase, TrainConfig
from gamma_kg.training.loop import Trainer
from gamma_kg.training.objective import batch_loss
from gamma_kg.training.run_folder import RunFolder

PHASE = Phase(sampler="subgraph", batch_size=4, batches_per_draw=2, negatives=6, entities=(10, 20))
CONFIG = TrainConfig(
    model_options={"dim": 8, "num_layers": 2, "attention_dim": 8},
    graphs=("tiny",),
    phases=(PHASE,),
    steps=6,
    loss="softmax",
    checkpoint_minutes=0,
    checkpoint_steps=2,
    log_steps=1,
    device="cpu",
)


def tiny_graph() -> TrainingGraph:
    rng = np.random.default_rng(0)
    return TrainingGraph.build("tiny", np.column_stack([rng.integers(n, size=90) for n in (25, 3, 25)]), 25, 3)


def gradients(processes: Processes) -> dict[str, torch.Tensor]:
    """Gradients of one batch of 8, of which each process sees its share."""
    training_graph = tiny_graph()
    graph = PreparedGraph.build(training_graph.triples, training_graph.num_entities, training_graph.num_relations)
    batch = make_batch(graph, 8, "all", 1, np.random.default_rng(0))
    torch.manual_seed(0)
    model = GammaModel(CONFIG.gamma_config)
    with torch.no_grad():  # branch weights that differ, so that the entropy term has a gradient
        model.attention.temperature.fill_(0.1)
    share = 8 // processes.count
    wrapped = processes.wrap(model)  # kept: its hooks average the gradients in the backward pass
    loss, _ = batch_loss(wrapped, batch.part(processes.number * share, (processes.number + 1) * share), CONFIG)
    loss.backward()
    return {name: value.grad for name, value in model.named_parameters() if value.grad is not None}


class DyingTrainer(Trainer):
    """Rank 1 dies without a word after its third step."""

    def _after_step(self, *arguments: Any) -> None:
        if self.processes.number == 1 and self.count.step == 3:
            os._exit(9)
        super()._after_step(*arguments)


def train(
    processes: Processes, folder: Path, kind: type[Trainer] = Trainer, *, resume: bool = False
) -> dict[str, torch.Tensor]:
    trainer = kind(CONFIG, [tiny_graph()], RunFolder(folder), processes=processes)
    trainer.run(resume=resume)
    return {name: value.detach() for name, value in trainer.model.named_parameters()}


def main() -> None:
    mode, folder = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    with join_processes() as processes:
        if mode == "resume":
            found = {"resumed": train(processes, folder / "died", resume=True)}
        else:
            found = {"gradients": gradients(processes), "weights": train(processes, folder / "run")}
        torch.save(found, folder / f"{mode}{processes.number}.pt")
        if mode == "train":
            train(processes, folder / "died", DyingTrainer)


if __name__ == "__main__":
    try:
        main()
    except GammaError as error:
        sys.exit(f"gamma: {error}")
