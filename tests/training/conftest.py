"""A small world to train on: families, whose relations compose, invert and repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.training.config import Phase, TrainConfig


@pytest.fixture(scope="session")
def training_graph() -> TrainingGraph:
    """60 people, parent_of with its inverse child_of and grandparent_of: rules that a model can find."""
    rng = np.random.default_rng(7)
    parents = [(int(rng.integers(0, child)), child) for child in range(1, 60)]
    of = {child: parent for parent, child in parents}
    triples = [(p, 0, c) for p, c in parents] + [(c, 1, p) for p, c in parents]
    triples += [(of[p], 2, c) for p, c in parents if p in of]
    return TrainingGraph.build("families", np.array(triples, dtype=np.int64), 60, 3)


@pytest.fixture
def tiny_config() -> TrainConfig:
    """A few cheap steps in one thread."""
    phase = Phase(sampler="subgraph", batch_size=4, batches_per_draw=2, negatives=6, max_answers=2, entities=(20, 40))
    return TrainConfig(
        model_options={"dim": 8, "num_layers": 2, "attention_dim": 8, "attention_dropout": 0.1},
        graphs=("families",),
        phases=(phase,),
        steps=8,
        loss="softmax",
        learning_rate=5e-3,
        checkpoint_minutes=0,
        checkpoint_steps=0,
        log_steps=1,
        device="cpu",
    )


@pytest.fixture(scope="session")
def family_folder(training_graph: TrainingGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same world as a benchmark folder: train.txt, valid.txt, test.txt."""
    folder = tmp_path_factory.mktemp("data") / "families"
    folder.mkdir()
    order = np.random.default_rng(1).permutation(training_graph.num_triples)
    relations = ("parent_of", "child_of", "grandparent_of")
    for name, part in (("valid", order[:15]), ("test", order[15:25]), ("train", order[25:])):
        lines = [f"p{h}\t{relations[r]}\tp{t}\n" for h, r, t in training_graph.triples[part].tolist()]
        (folder / f"{name}.txt").write_text("".join(lines))
    return folder
