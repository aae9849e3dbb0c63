"""Public runs of other models beside ours: only for the graphs at hand, and means over graphs that all have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gamma_kg.report.published import published
from gamma_kg.report.runs import Run, common_graphs, paper_groups
from gamma_kg.report.table import GROUP_TITLES, Table, mean_text


def public_name(model: str) -> str:
    return f"{model} (public run)"


def public_models(graphs: Iterable[str]) -> list[str]:
    """The models that have a figure for one of these graphs: no column stays empty."""
    at_hand = set(graphs)
    return [
        model for model, report in published().reports.items() if at_hand & (set(report.results) | set(report.tails))
    ]


def public_cells(graph: str, models: Sequence[str], tails: bool = False) -> list[str]:
    """MRR of each model on a graph."""
    cells = []
    for model in models:
        report = published().reports[model]
        figures = (report.tails if tails else report.results).get(graph)
        cells.append(f"{figures['mrr']:.3f}" if figures else "")
    return cells


def public_values(model: str, graphs: Sequence[str], metric: str = "mrr") -> list[float]:
    return [published().reports[model].results[graph][metric] for graph in graphs]


def graphs_with(model: str, graphs: Sequence[str]) -> list[str]:
    return [graph for graph in graphs if graph in published().reports[model].results]


def public_table(runs: Sequence[Run]) -> Table:
    """A row per model and group: its mean, and that of every run over the very same graphs."""
    groups = paper_groups(common_graphs(runs))
    columns = ["model", "group", "graphs", "its MRR", "its H@10"]
    for run in runs:
        columns += [f"{run.name} MRR", "H@10"]
    rows = []
    for model in public_models(groups["total"]):
        last: list[str] = []
        for group, among in groups.items():
            graphs = graphs_with(model, among)
            if not graphs or (group == "total" and len(graphs) == len(last)):
                continue  # one group alone is its own total
            last = graphs
            cells = [mean_text(public_values(model, graphs, m)) for m in ("mrr", "hits@10")]
            for run in runs:
                cells += [mean_text(run.values(graphs, m)) for m in ("mrr", "hits@10")]
            count = str(len(graphs)) if len(graphs) == len(among) else f"{len(graphs)} of {len(among)}"
            rows.append([public_name(model), GROUP_TITLES[group], count, *cells])
    note = "Each row over the graphs that the model and all runs have; who ran them is said under Every graph."
    return Table("public", "Beside public runs of other models", columns, rows, note)


def public_origins(models: Sequence[str]) -> str:
    """Who ran these models, and what differs."""
    origins = " ".join(f"{model}: {published().reports[model].origin}" for model in models)
    return f"Public runs of other models, of whole test splits. {origins}"
