"""Result files of `gamma evaluate`, gathered into one run per model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gamma_kg.data.catalog import GROUPS, PRETRAINING, catalog
from gamma_kg.data.leakage import leakage_of
from gamma_kg.errors import DataError
from gamma_kg.evaluation.store import FORMAT, read_result
from gamma_kg.predicting.models import BASELINES
from gamma_kg.report.published import published

SHOWN = ("mrr", "hits@10")


@dataclass(frozen=True)
class Run:
    """The results of one model: `results[dataset]` is a result record."""

    name: str
    model_hash: str
    description: str
    results: Mapping[str, Mapping[str, Any]]
    trained_on: tuple[str, ...] = PRETRAINING
    learnt_target: str | None = None
    ranks: Mapping[str, Path] = field(default_factory=dict)
    """Where the ranks of each graph's queries lie."""

    @property
    def is_baseline(self) -> bool:
        return self.name.partition(":")[0] in BASELINES

    def values(self, datasets: Iterable[str], metric: str = "mrr") -> list[float]:
        return [float(self.results[name][metric]) for name in datasets]


def load_runs(folders: Sequence[Path], split: str = "test") -> list[Run]:
    """One run per model found in the folders, and one more where it went by the rules of the graphs.

    The same graph twice for one run is an error, never a choice.
    """
    found: dict[tuple[str, bool], dict[str, dict[str, Any]]] = {}
    models: dict[str, Mapping[str, Any]] = {}
    ranks: dict[tuple[str, bool], dict[str, Path]] = {}
    for folder in folders:
        for path in _result_files(folder):
            result = read_result(path)
            # Ranks among relations and ranks among entities have no common mean.
            if result["split"] != split or result["task"] == "relation":
                continue
            if None in (*(result[name] for name in SHOWN), *(result["fair"][name] for name in SHOWN)):
                raise DataError(f"{path}: a mean over no query (null); leave it out of the report")
            model = result["model"]
            which = model["hash"], bool(result.get("rules"))
            results = found.setdefault(which, {})
            earlier = results.get(result["dataset"])
            if earlier is not None and earlier["key"] != result["key"]:
                raise DataError(
                    f"{path}: a second, different result of {model['name']} on {result['dataset']} "
                    "(other data or options); report one folder of each kind at a time"
                )
            results[result["dataset"]] = result
            models.setdefault(model["hash"], model)
            ranks.setdefault(which, {})[result["dataset"]] = path.parent / "ranks" / f"{path.stem}.npz"
    if not found:
        where = ", ".join(str(folder) for folder in folders)
        raise DataError(f"no results of the {split} split in {where}: run `gamma evaluate … --out DIR` first")
    runs = []
    for (model_hash, has_rules), results in sorted(found.items(), key=lambda one: list(models).index(one[0][0])):
        model = models[model_hash]
        name = model["name"]
        if sum(other["name"] == name for other in models.values()) > 1:
            name = f"{name} {model_hash[:6]}"
        is_baseline = name.partition(":")[0] in BASELINES
        # Results of earlier versions do not say; all their models with weights were trained on the three.
        trained_on = tuple(model.get("trained_on", () if is_baseline else PRETRAINING))
        target, found_ranks = model.get("learnt_target"), ranks[model_hash, has_rules]
        name += ", with rules" if has_rules else ""
        runs.append(Run(name, model_hash, model.get("description", ""), results, trained_on, target, found_ranks))
    return runs


def common_graphs(runs: Sequence[Run]) -> list[str]:
    """Graphs that every run has and none was trained on, in the order of the catalogue; others come last.

    The three pre-training graphs are out in any case: what one model learnt by heart says nothing of the others.
    """
    shared = set.intersection(*(set(run.results) for run in runs)) - set(PRETRAINING)
    shared = {g for g in shared if all(leakage_of(g, run.trained_on) != "trained-on" for run in runs)}
    known = [slug for slug in catalog() if slug in shared]
    return known + sorted(shared - set(known))


def paper_groups(graphs: Sequence[str]) -> dict[str, list[str]]:
    """The paper's groups among these graphs: pre-training graphs and graphs it does not report are left out."""
    reported = [g for g in graphs if g in published().results and g not in PRETRAINING]
    groups = {group: [g for g in reported if catalog()[g].group == group] for group in GROUPS}
    return groups | {"total": reported}


def leakage_groups(graphs: Sequence[str], runs: Sequence[Run]) -> dict[str, list[str]]:
    """Graphs of families that no run has seen test triples of in training, and the rest."""
    known = [g for g in graphs if g in catalog()]
    free = [g for g in known if all(leakage_of(g, run.trained_on) == "free" for run in runs)]
    return {"leakage-free families": free, "families related to training": [g for g in known if g not in free]}


def runs_with_strata(runs: Sequence[Run], by: str) -> list[Run]:
    """The runs that were evaluated `--by` this."""
    return [run for run in runs if any(result.get("by", {}).get(by) for result in run.results.values())]


def stratum_results(run: Run, by: str, stratum: str, graphs: Iterable[str]) -> list[Mapping[str, Any]]:
    """What the run has for a stratum, one entry per graph that has queries in it."""
    found = (run.results[graph].get("by", {}).get(by, {}).get(stratum) for graph in graphs)
    return [entry for entry in found if entry and entry["queries"]]


def _result_files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        raise DataError(f"no folder {folder}: wanted the --out folder of `gamma evaluate`")
    # Other tools may leave JSON files there as well.
    return [path for path in sorted(folder.glob("*.json")) if f'"{FORMAT}"' in path.read_text("utf-8", "replace")[:400]]
