"""Ablations: a list of presets trained under one equal budget, evaluated alike, in one table.

Same seeds, same data order, same budget for every row. Finished rows are kept in the folder, one file each, so an
ablation that was stopped goes on where it was; a row that was being trained is resumed inside.
"""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from gamma_kg.data.benchmark import Split, load_benchmark
from gamma_kg.errors import ConfigError
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.metrics import bootstrap_interval, rank_metrics
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.io.atomic import write_text
from gamma_kg.io.frozen import FrozenConfig
from gamma_kg.io.lock import beside, locked
from gamma_kg.io.sealed import read_object, seal
from gamma_kg.nn.checkpoint import load_checkpoint
from gamma_kg.nn.config import preset
from gamma_kg.nn.model import GammaModel
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.report.published import published
from gamma_kg.report.render import latex_text
from gamma_kg.training.config import TrainConfig, find_config, put_option, read_options, set_option
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.pretrain import run_config
from gamma_kg.training.run_folder import RunFolder


class AblationPlan(FrozenConfig):
    """What is compared, how it is trained, what it is judged on."""

    title: str
    rows: dict[str, str | dict[str, Any]]
    """Label in the table → preset, or options of `TrainConfig` (model_options for λ, κ, branches), dotted too."""
    seeds: tuple[int, ...] = (0, 1, 2)
    train: dict[str, Any] = Field(default_factory=dict)
    """Options of `TrainConfig` that all rows share; model and seed come from the row."""
    datasets: tuple[str, ...]
    """Benchmarks on which the trained models are evaluated, zero-shot."""
    split: Literal["valid", "test"] = "test"
    limit: int | None = Field(None, ge=1)
    """Triples per benchmark; all when None."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.rows or not self.seeds or not self.datasets:
            raise ValueError("a plan needs rows, seeds and datasets")
        for key in ("model", "seed"):
            if key in self.train:
                raise ValueError(f"train.{key}: comes from the plan's {'rows' if key == 'model' else 'seeds'}")
        for label in self.rows:
            preset(self.config(label, 0).model)
        return self

    def config(self, label: str, seed: int) -> TrainConfig:
        """The training config of one row and seed."""
        row = self.rows[label]
        own: dict[str, Any] = {"model": row} if isinstance(row, str) else dict(row)
        if "model_options" in own:
            own["model_options"] = {**self.train.get("model_options", {}), **own["model_options"]}
        options = deepcopy({**self.train, **{key: value for key, value in own.items() if "." not in key}, "seed": seed})
        for key, value in own.items():
            if "." in key:
                put_option(options, key, value)
        return TrainConfig.parse(options, where=f"row {label!r}")

    def file_name(self, label: str, seed: int) -> str:
        """The preset where the row is just that, else its label in letters that every disk takes."""
        row = self.rows[label]
        name = row if isinstance(row, str) else re.sub(r"[^\w.-]+", "-", label).strip("-")
        return f"{name}-seed{seed}"


def read_plan(path: str | Path, changes: Iterable[str] = ()) -> AblationPlan:
    """A plan file with `key=value` changes of its train options (of `seeds` and the like too).

    `base` in [train] names a config file from which all other options come.
    """
    options = read_options(path)
    train = options.setdefault("train", {})
    if "base" in train:
        options["train"] = {**read_options(find_config(path).parent / train.pop("base")), **train}
        for key in ("model", "seed"):
            options["train"].pop(key, None)
    for change in changes:
        set_option(options if change.partition("=")[0] in AblationPlan.model_fields else options["train"], change)
    return AblationPlan.parse(options, where=str(path))


def run_ablation(
    plan: AblationPlan, out: Path, *, data_dir: str | Path | None = None, report: Callable[[str], None] = print
) -> str:
    """Train and evaluate what is missing; returns the table, which is also written to `out`."""
    with locked(beside(out), f"the ablation in {out}", error=TrainingError):
        return _make_table(plan, out, data_dir, report)


def _make_table(plan: AblationPlan, out: Path, data_dir: str | Path | None, report: Callable[[str], None]) -> str:
    out.mkdir(parents=True, exist_ok=True)
    splits = {name: load_benchmark(name, data_dir) for name in plan.datasets}
    loaded = {benchmark.name: benchmark.split(plan.split) for benchmark in splits.values()}
    groups = {benchmark.name: benchmark.group for benchmark in splits.values()}
    results: dict[str, list[dict[str, Any]]] = {}
    for seed in plan.seeds:
        for label in plan.rows:
            results.setdefault(label, []).append(_row(plan, label, seed, out, loaded, data_dir, report))
            cells = table_cells(plan, results, groups)
            table = render_markdown(plan, cells, groups)
            write_text(out / "table.md", table)
            write_text(out / "table.csv", render_csv(cells))
            write_text(out / "table.tex", render_latex(plan, cells))
    write_text(out / "table.json", json.dumps(results, indent=1))
    return table


def _row(
    plan: AblationPlan,
    label: str,
    seed: int,
    out: Path,
    splits: Mapping[str, Split],
    data_dir: str | Path | None,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """One row and seed: from its file, or trained and evaluated now."""
    config, file_name = plan.config(label, seed), plan.file_name(label, seed)
    judged = {"split": plan.split, "limit": plan.limit, "datasets": sorted(splits)}
    made_by = {"train": config.model_dump(mode="json"), **judged}
    path = out / f"{file_name}.json"
    if path.is_file():
        row = read_object(
            path, "a row of this table; delete it to make it again", keys=("made_by", "metrics"), error=ConfigError
        )
        if row["made_by"] == made_by:
            return row
        raise ConfigError(f"{path} was made by another plan; choose another --out, or delete it to make it again")
    folder = RunFolder(out / file_name)
    report(f"{label}, seed {seed}")
    outcome = run_config(config, folder.path, resume=folder.state_path.is_file(), data_dir=data_dir)
    if outcome.status == "stopped":
        if signal.SIGTERM in outcome.signals:
            raise SystemExit(128 + signal.SIGTERM)
        raise KeyboardInterrupt
    checkpoint = load_checkpoint(folder.checkpoint_path(outcome.counters.step, average=config.ema_decay > 0))
    model = checkpoint.build()
    row = {
        "preset": config.model,
        "seed": seed,
        "parameters": model.num_parameters,
        "steps": outcome.counters.step,
        "samples": outcome.counters.samples,
        "metrics": evaluate_model(model, splits, plan.limit),
        "made_by": made_by,
    }
    write_text(path, json.dumps(seal(row), indent=1))
    return row


def evaluate_model(model: GammaModel, splits: Mapping[str, Split], limit: int | None) -> dict[str, dict[str, float]]:
    """MRR and Hits@10 per benchmark, by the published rank."""
    gamma, found = Gamma(model), {}
    for name, split in splits.items():
        counts = rank_split(gamma, split, QueryPlan.build(split, limit=limit))
        metrics = rank_metrics(counts.published_rank())
        found[name] = {"mrr": metrics["mrr"], "hits@10": metrics["hits@10"]}
    return found


def table_cells(
    plan: AblationPlan, results: Mapping[str, Sequence[Mapping[str, Any]]], groups: Mapping[str, str]
) -> list[list[str]]:
    """The table as in the paper, its head first: a line per variant, mean ± deviation over seeds, per group and total.

    Published figures stand beside, as far as the paper has the variant: over all its graphs, so not the same ones.
    """
    columns = {group: [n for n, g in groups.items() if g == group] for group in dict.fromkeys(groups.values())}
    if len(columns) > 1:
        columns["total"] = list(groups)
    head = ["variant", "parameters", "samples"]
    head += [f"{group} ({len(names)}) {metric}" for group, names in columns.items() for metric in ("MRR", "H@10")]
    head += ["against the first row: MRR", *(f"paper: {group} MRR" for group in columns)]
    lines = [head]
    first = next(iter(results.values()), [])
    for label, rows in results.items():
        cells = [label, f"{rows[0]['parameters']:,}", f"{statistics.mean(row['samples'] for row in rows):,.0f}"]
        for names in columns.values():
            for metric in ("mrr", "hits@10"):
                means = [statistics.mean(row["metrics"][name][metric] for name in names) for row in rows]
                cells.append(mean_and_deviation(means))
        cells.append("" if rows is first else difference(rows, first, list(groups)))
        row = plan.rows[label]
        theirs = published().groups.get(published().presets.get(row, ""), {}) if isinstance(row, str) else {}
        cells += [mean_and_deviation([theirs[group]["mrr"]]) if group in theirs else "" for group in columns]
        lines.append(cells)
    return lines


def render_markdown(plan: AblationPlan, cells: Sequence[Sequence[str]], groups: Mapping[str, str]) -> str:
    head, *rows = cells
    lines = [f"# {plan.title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    config = plan.config(next(iter(plan.rows)), plan.seeds[0])
    bounds = (
        f"{config.steps:,} steps" if config.steps else "",
        f"{config.minutes:g} minutes" if config.minutes else "",
    )
    budget = " or ".join(bound for bound in bounds if bound)
    capped = f", {plan.limit} triples each" if plan.limit else ""
    seeds = f"{len(plan.seeds)} seed{'s' if len(plan.seeds) > 1 else ''}"
    lines += ["", f"{budget} a row, {seeds}, {plan.split} sets{capped}: {', '.join(groups)}.", ""]
    return "\n".join(lines)


def render_csv(cells: Sequence[Sequence[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(cells)
    return stream.getvalue()


def render_latex(plan: AblationPlan, cells: Sequence[Sequence[str]]) -> str:
    """A tabular with booktabs."""
    head, *rows = [[latex_text(cell) for cell in line] for line in cells]
    lines = [rf"% {plan.title}", rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule"]
    lines += [" & ".join(head) + r" \\", r"\midrule", *(" & ".join(row) + r" \\" for row in rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def difference(rows: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """'+.012 (−.001 to +.025)': how much more MRR than the same seeds of the first row, with its interval over sets."""
    pairs = [(row["metrics"], other["metrics"]) for row in rows for other in first if row["seed"] == other["seed"]]
    if not pairs:
        return ""
    gains = [statistics.mean(ours[name]["mrr"] - theirs[name]["mrr"] for ours, theirs in pairs) for name in names]
    mean, *ends = (signed(value) for value in (statistics.mean(gains), *bootstrap_interval(gains)))
    return f"{mean} ({' to '.join(ends)})" if len(gains) > 1 else mean


def signed(value: float) -> str:
    """'+.012' or '−.012'."""
    return f"{'−' if value < 0 else '+'}{f'{abs(value):.4f}'.removeprefix('0')}"


def mean_and_deviation(values: Sequence[float]) -> str:
    """'.341 ± .004'; one value has no deviation."""
    mean = f"{statistics.mean(values):.3f}".removeprefix("0")
    if len(values) < 2:
        return mean
    return f"{mean} ± {f'{statistics.stdev(values):.3f}'.removeprefix('0')}"
