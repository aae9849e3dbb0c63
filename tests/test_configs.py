"""Every shipped config is read, and what it says is run for two steps on a tiny graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gamma_kg
from gamma_kg.data.catalog import catalog
from gamma_kg.errors import ConfigError
from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.nn.config import PRESETS
from gamma_kg.training.ablation import read_plan
from gamma_kg.training.config import TrainConfig, read_config
from gamma_kg.training.loop import Trainer
from gamma_kg.training.run_folder import RunFolder

ROOT = Path(gamma_kg.__file__).parent / "configs"
PLANS = sorted(ROOT.rglob("ablate-*.toml"))
RUNS = sorted(set(ROOT.rglob("*.toml")) - set(PLANS))


@pytest.fixture(scope="module")
def training_graph() -> TrainingGraph:
    rng = np.random.default_rng(0)
    triples = np.column_stack([rng.integers(n, size=90) for n in (25, 3, 25)])
    return TrainingGraph.build("tiny", triples, 25, 3)


def two_steps(config: TrainConfig, training_graph: TrainingGraph, folder: Path) -> Trainer:
    phases = [
        {**phase.model_dump(), "batch_size": 2, "entities": (10, 20), "graph_weights": None} for phase in config.phases
    ]
    small = config.with_options(steps=2, minutes=None, graphs=("tiny",), phases=phases, accumulate=1, device="cpu")
    trainer = Trainer(small, [training_graph], RunFolder(folder))
    trainer.run()
    return trainer


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_config_is_read_and_runs(path: Path, training_graph: TrainingGraph, tmp_path: Path) -> None:
    config = read_config(path)
    named = {name for name in config.graphs if not name.endswith(".txt") and name != "worlds"}
    assert {*named, *config.validation} <= catalog().keys()
    trainer = two_steps(config, training_graph, tmp_path / "run")
    assert trainer.count.step == 2
    assert all(weight.isfinite().all() for weight in trainer.model.parameters())


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_plan_is_read_and_its_last_row_runs(path: Path, training_graph: TrainingGraph, tmp_path: Path) -> None:
    plan = read_plan(path)
    assert set(plan.datasets) <= catalog().keys()
    assert two_steps(plan.config(list(plan.rows)[-1], 1), training_graph, tmp_path / "run").count.step == 2


def test_every_published_variant_can_be_trained_and_is_a_row_of_an_ablation() -> None:
    assert {read_config("paper", [f"model={name}"]).gamma_config for name in PRESETS} == set(PRESETS.values())
    assert {name for path in PLANS for name in read_plan(path).rows.values()} == PRESETS.keys()


def test_the_paper_run_is_the_published_one() -> None:
    config = read_config("paper")
    (phase,) = config.phases
    assert (config.steps, config.loss, config.learning_rate, config.checkpoint_steps) == (200_000, "bce", 5e-4, 20_000)
    assert (phase.sampler, phase.batch_size, phase.negatives, phase.graph_weights) == ("full", 64, 128, None)
    assert config.graphs == ("fb15k237", "wn18rr", "codex-m")


def test_a_shipped_config_is_found_by_its_name_and_a_wrong_name_is_helped() -> None:
    assert read_config("ten-minutes") == read_config(ROOT / "ten-minutes.toml")
    with pytest.raises(ConfigError, match=r"no config ten-minute: wanted a TOML file, or one of .*did you mean"):
        read_config("ten-minute")
