"""What is made from runs: the chosen checkpoint, curves, tables of ablations."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gamma_kg.drawing.charts import ticks
from gamma_kg.errors import ConfigError
from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.nn.checkpoint import load_checkpoint
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.ablation import (
    AblationPlan,
    difference,
    mean_and_deviation,
    render_markdown,
    run_ablation,
    table_cells,
)
from gamma_kg.training.config import TrainConfig
from gamma_kg.training.curve import curves, smoothed, write_curves
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.loop import Counters, Outcome, Trainer
from gamma_kg.training.run_folder import RunFolder
from gamma_kg.training.select import validate_checkpoints, write_selected
from gamma_kg.training.validation import load_validation, validator


@pytest.fixture
def run(training_graph: TrainingGraph, tiny_config: TrainConfig, family_folder: Path, tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    validate = validator(load_validation([str(family_folder)]), 5)
    config = tiny_config.with_options(validate_steps=4, checkpoint_steps=4)
    Trainer(config, [training_graph], folder, validate=validate).run()
    return folder


def test_selection_takes_the_best_mean_and_records_the_whole_table(run: RunFolder, tmp_path: Path) -> None:
    values = {4: 0.2, 8: 0.6}
    seen: list[GammaModel] = []

    def validate(model: GammaModel) -> dict[str, float]:
        seen.append(model)
        step = [4, 4, 8, 8][len(seen) - 1]
        return {"a": values[step], "b": 0.1 * len(seen)}

    candidates = validate_checkpoints(run, validate)
    names = [candidate.path.name for candidate in candidates]
    assert names == [f"step-000000{n}{kind}.safetensors" for n in (4, 8) for kind in (".ema", "")]
    out = tmp_path / "chosen.safetensors"
    write_selected(candidates, out, limit=5)
    chosen = load_checkpoint(out)
    assert chosen.provenance["selection"]["checkpoint"] == "step-0000008.safetensors"
    assert chosen.provenance["selection"]["mean"] == pytest.approx(0.5)
    assert chosen.provenance["step"] == 8
    table = out.with_suffix(".md").read_text()
    assert "| **step-0000008** | 0.6000 | 0.4000 | 0.5000 |" in table
    assert len(json.loads(out.with_suffix(".json").read_text())) == 4


def test_selection_can_look_at_the_last_steps_only(run: RunFolder) -> None:
    candidates = validate_checkpoints(run, lambda model: {"a": 0.0}, last=1)
    assert {candidate.path.name[:12] for candidate in candidates} == {"step-0000008"}


def test_a_folder_without_checkpoints_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no checkpoints"):
        validate_checkpoints(RunFolder(tmp_path), lambda model: {})


def test_curves_hold_every_record_of_the_log(run: RunFolder) -> None:
    charts = curves(run)
    assert len(charts["Training loss"]["batch"]) == 8
    assert list(charts["Validation MRR"]) == ["mean", "families"]
    assert len(charts["Validation MRR"]["mean"]) == 3


def test_curves_are_drawn_as_svg_and_as_a_page_without_links(run: RunFolder, tmp_path: Path) -> None:
    write_curves(run, tmp_path / "c.svg")
    root = ElementTree.parse(tmp_path / "c.svg").getroot()
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    write_curves(run, tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert page.count("<svg") == 3
    assert "src=" not in page
    assert "href=" not in page


def test_curves_are_drawn_as_png(run: RunFolder, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="PNG is optional")
    write_curves(run, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_ending_is_refused(run: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.html, \.svg, \.png, not '\.pdf'"):
        write_curves(run, tmp_path / "c.pdf")


@pytest.mark.parametrize("high", [0.0, 0.0005, 0.43, 6.1, 111.0, 1234.0])
def test_ticks_cover_the_range_with_few_round_numbers(high: float) -> None:
    found = ticks(0.0, high)
    assert found[0] <= 0
    assert found[-1] >= high
    assert 2 <= len(found) <= 8


def test_smoothing_starts_at_the_first_value() -> None:
    assert smoothed([(0, 4.0), (1, 2.0)], keep=0.5) == [(0, 4.0), (1, pytest.approx(4 / 1.5 * 0.5 + 2 / 1.5))]


@pytest.fixture
def plan(tiny_config: TrainConfig, family_folder: Path) -> AblationPlan:
    train = {**tiny_config.with_options(steps=2).model_dump(mode="json"), "graphs": [str(family_folder)]}
    for key in ("model", "seed"):
        del train[key]
    return AblationPlan(
        title="Position",
        rows={"late": "gamma", "early": "gamma-early"},
        seeds=(0, 1),
        train=train,
        datasets=(str(family_folder),),
        limit=4,
    )


def test_an_ablation_writes_a_table_and_does_not_train_finished_rows_again(plan: AblationPlan, tmp_path: Path) -> None:
    trained: list[str] = []
    table = run_ablation(plan, tmp_path, report=trained.append)
    assert trained == ["late, seed 0", "early, seed 0", "late, seed 1", "early, seed 1"]
    assert (tmp_path / "table.md").read_text() == table
    late, early = (line for line in table.splitlines() if line.startswith(("| late", "| early")))
    assert late.count("±") == early.count("±") == 2
    (tmp_path / "gamma-early-seed1.json").unlink()
    trained.clear()
    assert run_ablation(plan, tmp_path, report=trained.append) == table
    assert trained == ["early, seed 1"]


@pytest.mark.parametrize(("sign", "ends"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_stopped_ablation_ends_as_its_signal_says(
    sign: signal.Signals, ends: type[BaseException], plan: AblationPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Outcome("stopped", Counters(), signals=[sign])
    monkeypatch.setattr("gamma_kg.training.ablation.run_config", lambda *_, **__: stopped)
    with pytest.raises(ends) as found:
        run_ablation(plan, tmp_path, report=lambda line: None)
    assert sign == signal.SIGINT or found.value.code == 143  # type: ignore[attr-defined]


def test_two_ablations_in_one_folder_are_refused(plan: AblationPlan, tmp_path: Path) -> None:
    def at_once(line: str) -> None:
        with pytest.raises(TrainingError, match="another process"):
            run_ablation(plan, tmp_path, report=lambda line: None)

    assert run_ablation(plan, tmp_path, report=at_once)


def test_rows_of_another_plan_are_not_mixed_in(plan: AblationPlan, tmp_path: Path) -> None:
    run_ablation(plan, tmp_path, report=lambda line: None)
    with pytest.raises(ConfigError, match="made by another plan"):
        run_ablation(plan.with_options(limit=3), tmp_path, report=lambda line: None)


def test_rows_differ_in_model_and_seed_only(plan: AblationPlan) -> None:
    first, second = plan.config("late", 0), plan.config("early", 1)
    assert first == second.with_options(model="gamma", seed=0)
    with pytest.raises(ConfigError, match=r"train\.seed"):
        plan.with_options(train={**plan.train, "seed": 3})


def test_means_come_with_deviations_over_seeds() -> None:
    assert mean_and_deviation([0.3, 0.4]) == ".350 ± .071"
    assert mean_and_deviation([0.3411]) == ".341"


def test_a_row_of_an_ablation_may_set_any_option(plan: AblationPlan, tmp_path: Path) -> None:
    row = {"model": "gamma", "entropy_weight": 0.5, "model_options": {"uniform_mix": 0.3}}
    wider = AblationPlan.parse({**plan.model_dump(mode="json"), "rows": {"GAMMA": "gamma", "λ .3, β ½": row}})
    changed, plain = wider.config("λ .3, β ½", 0), wider.config("GAMMA", 0)
    assert changed.gamma_config.uniform_mix == 0.3 and changed.entropy_weight == 0.5
    assert changed.gamma_config.dim == plain.gamma_config.dim == 8, "options that all rows share stay"
    dotted = {"phases.0.entities": [10, 30], "model_options.uniform_mix": 0.3}
    inside = AblationPlan.parse({**plan.model_dump(mode="json"), "rows": {"small": dotted, "GAMMA": "gamma"}})
    small, whole = inside.config("small", 0), inside.config("GAMMA", 0)
    assert small.phases[0] == whole.phases[0].with_options(entities=(10, 30)), "a dotted key changes that option alone"
    assert small.gamma_config == whole.gamma_config.with_options(uniform_mix=0.3)
    with pytest.raises(ConfigError, match=r"phases\.7\.entities: '7' is no position in a list of 1"):
        inside.with_options(rows={"small": {"phases.7.entities": [10, 30]}})
    table = run_ablation(wider, tmp_path / "wider", report=lambda _: None)
    assert "paper: own MRR" in table
    for name in ("table.csv", "table.tex"):
        assert "λ .3, β ½" in (tmp_path / "wider" / name).read_text()


def test_the_table_of_an_ablation_shows_published_figures(plan: AblationPlan) -> None:
    metrics = {"nl-0": {"mrr": 0.3, "hits@10": 0.5}}
    results = {label: [{"seed": 0, "parameters": 1, "samples": 1, "metrics": metrics}] for label in plan.rows}
    head, late, early = table_cells(plan, results, {"nl-0": "inductive-er"})
    assert head[-1] == "paper: inductive-er MRR" and (late[-1], early[-1]) == (".360", ".349")


def test_rows_are_compared_with_the_same_seeds_of_the_first_set_by_set() -> None:
    def row(seed: int, **mrr: float) -> dict[str, Any]:
        return {"seed": seed, "metrics": {name: {"mrr": value} for name, value in mrr.items()}}

    first = [row(0, a=0.2, b=0.4), row(1, a=0.3, b=0.5), row(2, a=0.9, b=0.9)]
    assert difference([row(0, a=0.25, b=0.38), row(1, a=0.36, b=0.51)], first, "ab") == "+.0250 (−.0050 to +.0550)"
    assert difference([row(1, a=0.25, b=0.5)], first, "a") == "−.0500", "one set has no interval"
    assert difference([row(7, a=0.25, b=0.5)], first, "ab") == "", "no seed in common"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"steps": 1500}, "1,500 steps a row"),
        ({"steps": None, "minutes": 2.5}, "2.5 minutes a row"),
        ({"minutes": 5}, "200,000 steps or 5 minutes a row"),
        ({}, "200,000 steps a row"),
    ],
)
def test_the_budget_under_the_table_is_that_of_the_rows(plan: AblationPlan, given: dict[str, Any], said: str) -> None:
    rest = {name: value for name, value in plan.train.items() if name not in ("steps", "minutes")}
    assert said in render_markdown(plan.with_options(train={**rest, **given}), [["variant"]], {"nl-0": "inductive-er"})
