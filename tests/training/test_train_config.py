from __future__ import annotations

from pathlib import Path

import pytest

from gamma_kg.errors import ConfigError
from gamma_kg.training.config import Phase, TrainConfig, read_config, read_options


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_defaults_are_the_published_run() -> None:
    config = TrainConfig()
    assert (config.steps, config.loss, config.phases[0].batch_size, config.phases[0].negatives) == (
        200_000,
        "bce",
        64,
        128,
    )
    assert config.gamma_config.branches == ("complex", "split-complex")


def test_changes_reach_nested_options_and_keep_their_type(tmp_path: Path) -> None:
    path = write(tmp_path / "c.toml", 'model = "ultra"\n[[phases]]\nbatch_size = 4\n')
    changes = [
        "phases.0.batch_size=8",
        "learning_rate=1e-3",
        "loss=softmax",
        "model_options.dim=32",
        "graphs=['a', 'b']",
    ]
    config = read_config(path, changes)
    assert config.phases[0].batch_size == 8
    assert config.learning_rate == 1e-3
    assert config.loss == "softmax"
    assert config.graphs == ("a", "b")
    assert config.gamma_config.dim == 32


def test_a_base_gives_what_the_file_does_not_say(tmp_path: Path) -> None:
    write(tmp_path / "base.toml", "steps = 7\nseed = 3\n")
    config = read_config(write(tmp_path / "c.toml", 'base = "base.toml"\nseed = 4\n'))
    assert (config.steps, config.seed) == (7, 4)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("step = 5", "no option 'step'; did you mean 'steps'"),
        ("steps = 0", "steps"),
        ("loss = 'hinge'", "loss"),
        ("[[phases]]\nbatchsize = 4", "batchsize"),
        ("[[phases]]\nentities = [50, 20]", "entities: bounds"),
        ("[[phases]]\nnegatives = 0", "negatives: wanted 1 or more"),
        ("[[phases]]\ngraph_weights = [1.0]", "graph_weights: wanted one per training graph"),
        ("graphs = []", "graphs"),
        ("steps = ", "is not a TOML file"),
    ],
)
def test_a_bad_config_names_the_file_and_the_option(tmp_path: Path, text: str, complaint: str) -> None:
    path = write(tmp_path / "bad.toml", text)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert complaint in str(caught.value)
    assert "bad.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("steps", "--set wants key=value"),
        ("phases.5.share=1", "no position in a list of 1"),
        ("phase.0.share=1", "no option 'phase'; did you mean 'phases'"),
    ],
)
def test_a_bad_change_is_explained(tmp_path: Path, change: str, complaint: str) -> None:
    path = write(tmp_path / "c.toml", "[[phases]]\n")
    with pytest.raises(ConfigError, match=complaint):
        read_config(path, [change])


def test_a_run_without_budget_is_refused() -> None:
    with pytest.raises(ConfigError, match="budget"):
        TrainConfig.parse({"steps": None})


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"can't read the config nowhere\.toml"):
        read_config("nowhere.toml")


def test_phase_options_are_those_of_the_sampler() -> None:
    options = Phase(entities=(5, 9), drop_chance=0.25).subgraph
    assert (options.entities, options.drop_chance) == ((5, 9), 0.25)


def test_a_base_that_leads_back_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text('base = "two.toml"\n')
    (tmp_path / "two.toml").write_text('base = "one.toml"\n')
    with pytest.raises(ConfigError, match=r"leads back to itself \(one.toml → two.toml → one.toml\)"):
        read_options(tmp_path / "one.toml")
