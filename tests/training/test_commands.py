"""The commands around training, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gamma_kg.cli import app
from gamma_kg.errors import GammaError
from gamma_kg.nn.checkpoint import load_checkpoint
from gamma_kg.nn.config import GammaConfig
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.training.config import TrainConfig

runner = CliRunner()


@pytest.fixture
def config_file(tiny_config: TrainConfig, family_folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(
        f"""
        graphs = ["{family_folder}"]
        validation = ["{family_folder}"]
        validation_limit = 4
        validate_steps = 3
        steps = 6
        loss = "softmax"
        log_steps = 1
        checkpoint_steps = 2
        device = "cpu"
        model_options = {{ dim = 8, num_layers = 2, attention_dim = 8 }}
        [[phases]]
        batch_size = 4
        negatives = 5
        """
    )
    return path


def call(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, GammaError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_pretrain_select_and_curve_follow_each_other(config_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    output = call("pretrain", config_file, "--out", run, "--set", "seed=5")
    assert "validation MRR" in output
    assert "step 6  finished" in output
    assert json.loads((run / "config.json").read_text())["seed"] == 5
    assert "chosen: step-" in call("select", run, "--limit", 4)
    assert Gamma.from_pretrained(run / "selected.safetensors").provenance["selection"]["among"] == 6
    assert call("curve", run).strip().endswith("curves.html")


def test_a_second_start_needs_resume_and_resume_takes_a_larger_budget(config_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    call("pretrain", config_file, "--out", run)
    with pytest.raises(GammaError, match="--resume"):
        call("pretrain", config_file, "--out", run)
    call("pretrain", config_file, "--out", run, "--resume", "--set", "steps=8")
    steps = [json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines() if '"train"' in line]
    assert steps == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_run_that_goes_on_from_a_checkpoint_says_how_that_one_was_made(config_file: Path, tmp_path: Path) -> None:
    call("pretrain", config_file, "--out", tmp_path / "first", "--set", "seed=5")
    start = tmp_path / "first" / "checkpoints" / "step-0000006.safetensors"
    call("pretrain", config_file, "--out", tmp_path / "second", "--set", f"init={start}", "--set", "steps=2")
    made = Gamma.from_pretrained(tmp_path / "second" / "checkpoints" / "step-0000002.safetensors").provenance
    assert (made["step"], made["init"]["step"], made["init"]["seed"]) == (2, 6, 5)


def test_minutes_replace_the_steps_of_the_config(config_file: Path, tmp_path: Path) -> None:
    call("pretrain", config_file, "--out", tmp_path / "run", "--minutes", 0.005, "--set", "validation=[]")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["steps"], config["minutes"]) == (None, 0.005)


def test_a_run_from_two_models_has_the_branches_of_both_and_may_learn_from_them(
    config_file: Path, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("two.safetensors", "one.safetensors")]
    for number, (path, branches) in enumerate(zip(files, [("complex", "dual"), ("real",)], strict=True)):
        options = GammaConfig(dim=8, num_layers=2, attention_dim=8, branches=branches, relation_graph="pairs")
        Gamma.from_config(options, seed=number).save(path)
    names = json.dumps([str(path) for path in files])
    # What the joined model is follows from its start, not from the preset of the config file.
    changes = ("model=gamma", "model_options={}", f"init={names}", f"teachers={names}", "steps=2")
    call("pretrain", config_file, "--out", tmp_path / "run", *(word for c in changes for word in ("--set", c)))
    made = load_checkpoint(max((tmp_path / "run" / "checkpoints").glob("*.safetensors")))
    assert made.config.branches == ("complex", "dual", "real") and made.config.relation_encoders == "own"
    assert len(made.provenance["teachers"]) == 2
    begun = ["untrained, seed 0", "untrained, seed 1"]
    assert [start["origin"] for start in made.provenance["init"]["before"]] == begun


def test_finetune_reports_before_and_after(family_folder: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    Gamma.from_config(GammaConfig(dim=8, num_layers=2, attention_dim=8)).save(start)
    options = ("--set", "steps=4", "--set", "validate_steps=2", "--set", "phases.0.batch_size=4")
    output = call("finetune", family_folder, "--model", start, "--out", tmp_path / "run", *options)
    assert "validation MRR 0." in output
    assert "→" in output
    assert (tmp_path / "run" / "best.safetensors").is_file()


def test_ablate_prints_the_table(config_file: Path, family_folder: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"""
        title = "Two rows"
        seeds = [0, 1]
        datasets = ["{family_folder}"]
        limit = 3
        rows = {{ "one branch" = "ultra", "two" = "ultra-att" }}
        [train]
        base = "tiny.toml"
        validation = []
        model_options = {{ dim = 8, num_layers = 2 }}
        """
    )
    output = call("ablate", plan, "--out", tmp_path / "ablation", "--set", "seeds=[0]", "--set", "steps=2")
    assert "# Two rows" in output
    assert "| one branch | " in output


def test_tensorboard_gets_every_number(config_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="TensorBoard is optional")
    call("pretrain", config_file, "--out", tmp_path / "run", "--set", "tensorboard=true")
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))
