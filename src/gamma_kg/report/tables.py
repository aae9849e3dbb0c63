"""Runs to tables: plain records of text cells that every renderer understands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gamma_kg.analysis.halflinks import STRATA
from gamma_kg.analysis.patterns import PATTERNS
from gamma_kg.data.catalog import catalog
from gamma_kg.evaluation.metrics import bootstrap_interval
from gamma_kg.report.comparisons import comparison_table
from gamma_kg.report.public_runs import public_cells, public_models, public_origins, public_table
from gamma_kg.report.published import PAPER_MODELS, published
from gamma_kg.report.runs import (
    Run,
    common_graphs,
    leakage_groups,
    paper_groups,
    runs_with_strata,
    stratum_results,
)
from gamma_kg.report.table import GROUP_TITLES, Table, interval_text, mean_text, number_text

METRICS = ("mrr", "hits@10")


def report_tables(runs: Sequence[Run]) -> list[Table]:
    """Everything there is to say about these runs, empty tables left out."""
    tables = [
        group_table(runs),
        interval_table(runs),
        public_table(runs),
        comparison_table(runs),
        leakage_table(runs),
        baseline_table(runs),
        strata_table(runs, "pattern", PATTERNS),
        strata_table(runs, "halflink", STRATA),
        graph_table(runs),
    ]
    return [_filled(table) for table in tables if table.rows]


def _filled(table: Table) -> Table:
    """The table without columns that are empty in every row."""
    used = [i for i in range(len(table.columns)) if any(row[i] for row in table.rows)]
    return replace(table, columns=[table.columns[i] for i in used], rows=[[row[i] for i in used] for row in table.rows])


def group_table(runs: Sequence[Run]) -> Table:
    """The paper's table: mean MRR and Hits@10 per group, over the graphs that all runs share."""
    groups = paper_groups(common_graphs(runs))
    columns = ["model"]
    for group, graphs in groups.items():
        columns += [f"{GROUP_TITLES[group]} ({len(graphs)}) MRR", "H@10"]
    rows = []
    if groups["total"]:
        for run in runs:
            cells = [[mean_text(run.values(graphs, m)) for m in METRICS] for graphs in groups.values()]
            rows.append([run.name, *(cell for pair in cells for cell in pair)])
        for model in PAPER_MODELS:
            means = [
                mean_text([published().results[g][model][m] for g in graphs])
                for graphs in groups.values()
                for m in METRICS
            ]
            rows.append([f"{model} (paper), same graphs", *means])
        for model in PAPER_MODELS:
            figures = published().groups[model]
            full = [f"{figures[group][m]:.3f}" for group in groups for m in METRICS]
            rows.append([f"{model} (paper), all 53", *full])
        for model, reported in published().others.items():
            theirs = [f"{reported[g]:.3f}" if g in reported and m == "mrr" else "" for g in groups for m in METRICS]
            rows.append([f"{model} (its report), all graphs", *theirs])
    tuned = [f"{run.name} ({run.learnt_target})" for run in runs if run.learnt_target]
    note = "Means of per-graph figures, zero-shot; graphs that a model was trained on left out."
    if tuned:
        note = f"Means of per-graph figures. Adapted or fine-tuned, so not zero-shot: {', '.join(tuned)}."
    sampled = sum(_is_sample(run.results[g]) for run in runs for g in groups["total"])
    if sampled:
        note += f" {sampled} of the figures are of a sample of the test triples, not of all."
    return Table("groups", "Mean over graphs", columns, rows, note)


def interval_table(runs: Sequence[Run]) -> Table:
    groups = {group: graphs for group, graphs in paper_groups(common_graphs(runs)).items() if len(graphs) > 1}
    columns = ["model", *(f"{GROUP_TITLES[group]} ({len(graphs)})" for group, graphs in groups.items())]
    rows = [
        [run.name, *(interval_text(bootstrap_interval(run.values(graphs))) for graphs in groups.values())]
        for run in runs
        if groups
    ]
    return Table("intervals", "95 % intervals of mean MRR", columns, rows, "Bootstrap over graphs, 10,000 draws.")


def leakage_table(runs: Sequence[Run]) -> Table:
    groups = {name: graphs for name, graphs in leakage_groups(common_graphs(runs), runs).items() if graphs}
    columns = ["model", *(f"{name} ({len(graphs)})" for name, graphs in groups.items())]
    rows = [[run.name, *(mean_text(run.values(graphs)) for graphs in groups.values())] for run in runs if groups]
    for model in PAPER_MODELS if groups else ():
        cells = []
        for graphs in groups.values():
            reported = [g for g in graphs if g in published().results]
            more = "" if len(reported) == len(graphs) else f" ({len(reported)})"
            cells.append(mean_text([published().results[g][model]["mrr"] for g in reported]) + more)
        rows.append([f"{model} (paper), same graphs", *cells])
    note = (
        "Mean MRR, by the training graphs of the models shown. Test triples of related families occur in a training "
        "graph (all of wn18rr-v* and fb15k237-v*, most of fb-*, codex-s, ilpc22-s), or that was not ruled out."
    )
    return Table("leakage", "Family leakage", columns, rows, note)


def baseline_table(runs: Sequence[Run]) -> Table:
    """Graphs on which a model does not beat what costs nothing."""
    baselines = [run for run in runs if run.is_baseline]
    rows = []
    for run in runs:
        if run.is_baseline:
            continue
        for baseline in baselines:
            graphs = common_graphs([run, baseline])
            behind = [g for g in graphs if _fair(run, g) <= _fair(baseline, g)]
            rows.append([run.name, baseline.name, str(len(graphs)), str(len(behind)), ", ".join(behind) or "none"])
    columns = ("model", "baseline", "graphs", "not beaten on", "which")
    return Table("baselines", "Against baselines", columns, rows, "By fair MRR (ties shared).")


def strata_table(runs: Sequence[Run], by: str, strata: Sequence[str]) -> Table:
    """MRR per stratum over the graphs that all these runs share: mean over graphs, and pooled over queries."""
    have = runs_with_strata(runs, by)
    graphs = common_graphs(have) if have else []
    paper = published().pattern_groups if by == "pattern" else {}
    columns = ["stratum", "graphs", "queries"]
    for run in have:
        columns += [f"{run.name} MRR", "pooled"]
    columns += [f"{model} (paper) MRR" for model in paper]
    rows = []
    for stratum in strata if have else ():
        entries = {run.name: stratum_results(run, by, stratum, graphs) for run in have}
        first = next(iter(entries.values()))
        cells = [stratum, str(len(first)), f"{sum(entry['queries'] for entry in first):,}"]
        for found in entries.values():
            queries = sum(entry["queries"] for entry in found)
            pooled = sum(entry["mrr"] * entry["queries"] for entry in found) / queries if queries else math.nan
            cells += [mean_text([entry["mrr"] for entry in found]), number_text(pooled)]
        cells += [f"{paper[model][stratum]['mrr']:.3f}" if stratum in paper[model] else "" for model in paper]
        rows.append(cells)
    title = {"pattern": "By relation pattern", "halflink": "By half-links"}[by]
    notes = {
        "pattern": "Groups of 50 or more test triples of a graph; a relation may show several patterns. "
        "The paper's means are over its own graphs (12, 53 and 39).",
        "halflink": "Query half (source, relation) and answer half (relation, answer), each in the graph or not.",
    }
    return Table(by, title, columns, rows, f"Mean over graphs, and pooled over queries. {notes[by]}")


def graph_table(runs: Sequence[Run]) -> Table:
    """Every graph of every run, beside the published columns."""
    graphs = [slug for slug in catalog() if any(slug in run.results for run in runs)]
    graphs += sorted({name for run in runs for name in run.results} - set(graphs))
    columns = ["graph", "group"]
    for run in runs:
        columns += [f"{run.name} MRR", "fair", "H@10"]
    columns += [f"{model} (paper) {metric}" for model in PAPER_MODELS for metric in ("MRR", "H@10")]
    others = public_models(graphs)
    columns += [f"{model} MRR" for model in others]
    rows = []
    for graph in graphs:
        own: list[str] = []
        for run in runs:
            own += _graph_cells(run.results.get(graph))
        paper = published().results.get(graph, {})
        theirs = [f"{paper[m][k]:.3f}" if m in paper else "" for m in PAPER_MODELS for k in METRICS]
        group = next(run.results[graph]["group"] for run in runs if graph in run.results)
        rows.append([graph, GROUP_TITLES.get(group, group), *own, *theirs, *public_cells(graph, others)])
        if graph in catalog() and catalog()[graph].ultra_task == "tail":
            tails = [cell for run in runs for cell in _tail_cells(run.results.get(graph))]
            rows.append([f"{graph}, tails", "", *tails, *[""] * len(theirs), *public_cells(graph, others, tails=True)])
    note = "MRR and H@10 with ties against the model, as published; fair: ties shared. * a sample of the test triples."
    if others:
        note += " " + public_origins(others)
    return Table("graphs", "Every graph", columns, rows, note)


def _is_sample(result: Mapping[str, Any]) -> bool:
    """Whether triples were left out; a limit above the size of the split leaves out none."""
    return bool(result["limit"]) and result.get("triples", 0) < result.get("triples_in_split", math.inf)


def _graph_cells(result: Any) -> list[str]:
    if result is None:
        return ["", "", ""]
    mark = "*" if _is_sample(result) else ""
    return [f"{result['mrr']:.3f}{mark}", f"{result['fair']['mrr']:.3f}{mark}", f"{result['hits@10']:.3f}{mark}"]


def _tail_cells(result: Any) -> list[str]:
    """Tails alone, as ULTRA's README has these sets."""
    if result is None or "tail" not in result:
        return ["", "", ""]
    mark = "*" if _is_sample(result) else ""
    return [f"{result['tail']['mrr']:.3f}{mark}", "", f"{result['tail']['hits@10']:.3f}{mark}"]


def _fair(run: Run, graph: str) -> float:
    return float(run.results[graph]["fair"]["mrr"])
