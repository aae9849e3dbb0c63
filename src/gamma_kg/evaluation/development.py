"""The development suite: one number per set for a model, on validation triples; finished sets are never ranked again.

Comes in: models. Goes out: per model the MRR of each set (fair rank), their mean, and the reversal rates. The suite
itself is `development.toml`. Results lie in `out`/<hash of the model>, in the files of `gamma evaluate`.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from gamma_kg.data.benchmark import Benchmark, file_sha256, load_benchmark, own_benchmark
from gamma_kg.data.read import read_triples
from gamma_kg.errors import ConfigError, DataError
from gamma_kg.evaluation.benchmark import evaluate_benchmark
from gamma_kg.evaluation.options import EvaluationOptions
from gamma_kg.evaluation.reversal import reversal_rate
from gamma_kg.io.atomic import write_text
from gamma_kg.io.sealed import read_object, seal
from gamma_kg.predicting.models import NamedModel


@dataclass(frozen=True)
class Development:
    """What the suite found: `mrr[set]` for the sets at hand, `reversed[set]` = (share, queries)."""

    mrr: Mapping[str, float]
    groups: Mapping[str, list[str]]
    reversed: Mapping[str, tuple[float, int]]
    absent: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.mrr.values())))

    def group_mean(self, group: str) -> float:
        return float(np.mean([self.mrr[name] for name in self.groups[group]]))


@functools.cache
def suite() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("development.toml").read_text("utf-8"))


def develop(
    model: NamedModel,
    out: Path,
    *,
    data_dir: str | Path | None = None,
    graphs: Path | None = None,
    triples: int | None = None,
    report: Any = None,
) -> Development:
    """Rank the suite's validation triples with a model; what `out` has already is taken from there."""
    plan = suite()
    options = EvaluationOptions(split="valid", limit=triples or plan["triples"], seed=plan["seed"])
    folder = out / model.hash[:16]
    mrr: dict[str, float] = {}
    groups: dict[str, list[str]] = {}
    absent: list[str] = []
    reversed_: dict[str, tuple[float, int]] = {}
    for group, name, benchmark in _sets(plan, out, data_dir, graphs):
        if benchmark is None:
            absent.append(name)
            continue
        result = evaluate_benchmark(benchmark, model, options, out=folder)
        mrr[name] = float(result["fair"]["mrr"])
        groups.setdefault(group, []).append(name)
        if name in plan["reversal"]["sets"]:
            reversed_[name] = _reversal(model, benchmark, options, folder)
        if report is not None:
            report(f"{name}: {mrr[name]:.4f}")
    if not mrr:
        raise ConfigError("none of the suite's sets is at hand: point --data-dir or GAMMA_DATA to their folder")
    return Development(mrr, groups, reversed_, absent)


def _sets(
    plan: Mapping[str, Any], out: Path, data_dir: str | Path | None, graphs: Path | None
) -> Iterator[tuple[str, str, Benchmark | None]]:
    for group in plan["groups"]:
        for name in group.get("sets", ()):
            try:
                yield group["name"], name, load_benchmark(name, data_dir)
            except DataError:
                yield group["name"], name, None
        for name in group.get("files", ()):
            path = graphs / f"{name}.txt" if graphs is not None else None
            has = path is not None and path.is_file()
            split = own_benchmark(split_file(path, out / "splits", group["share"])) if path and has else None
            yield group["name"], name, split


def split_file(path: Path, folder: Path, share: float, seed: int = 0) -> Path:
    """A folder with train.txt, valid.txt and test.txt made of one file of triples; `share` each for the latter two."""
    target = folder / path.stem
    made_of = {"sha256": file_sha256(path), "share": share, "seed": seed}
    record = target / "split.json"
    if record.is_file() and read_object(record, "the record of a split; delete it to make it again") == made_of:
        return target
    table = read_triples(path, format="tsv", header=False, progress=False)
    lines = [
        f"{table.entities[h]}\t{table.relations[r]}\t{table.entities[t]}\n"
        for h, r, t in np.unique(table.triples, axis=0).tolist()
    ]
    order = np.random.default_rng(seed).permutation(len(lines))
    count = max(1, round(share * len(lines)))
    parts = {"valid": order[:count], "test": order[count : 2 * count], "train": order[2 * count :]}
    target.mkdir(parents=True, exist_ok=True)
    for part, chosen in parts.items():
        write_text(target / f"{part}.txt", "".join(lines[i] for i in sorted(chosen)))
    write_text(record, json.dumps(seal(made_of)))
    return target


def _reversal(model: NamedModel, benchmark: Benchmark, options: EvaluationOptions, folder: Path) -> tuple[float, int]:
    path = folder / f"{benchmark.name}.reversal.{options.limit}.json"
    if path.is_file():
        kept = read_object(path, "a share of reversed answers; delete it to count anew", keys=("share", "queries"))
        return float(kept["share"]), int(kept["queries"])
    share, queries = reversal_rate(model.predictor, benchmark.split("valid"), limit=options.limit, seed=options.seed)
    write_text(path, json.dumps(seal({"share": share, "queries": queries})))
    return share, queries
