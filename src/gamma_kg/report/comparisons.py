"""Paired comparisons as a table: runs against each other, against the paper and against public runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from gamma_kg.report.compare import QueryComparison, compare, compare_queries
from gamma_kg.report.public_runs import graphs_with, public_models, public_name, public_values
from gamma_kg.report.published import PAPER_MODELS, published
from gamma_kg.report.runs import Run, common_graphs
from gamma_kg.report.table import Table, interval_text, p_text


def comparison_table(runs: Sequence[Run]) -> Table:
    """Every run against every other, over graphs and over queries; and over graphs against published columns."""
    rows = []
    for first, second in combinations(runs, 2):
        graphs = common_graphs([first, second])
        if graphs:
            cells = _over_graphs(first.name, second.name, first.values(graphs), second.values(graphs))
            rows.append([*cells, *_over_queries(_ranks_of(first, second, graphs), len(graphs))])
    for run in runs:
        graphs = common_graphs([run])
        against = {}
        for model in PAPER_MODELS:
            figures = {g: published().results[g][model]["mrr"] for g in graphs if g in published().results}
            against[f"{model} (paper)"] = figures
        for model in () if run.is_baseline else public_models(graphs):
            have = graphs_with(model, graphs)
            against[public_name(model)] = dict(zip(have, public_values(model, have), strict=True))
        for name, theirs in against.items():
            if theirs:
                cells = _over_graphs(run.name, name, run.values(theirs), list(theirs.values()))
                rows.append([*cells, "", "", ""])
    columns = ["first − second", "graphs", "wins", "ties", "losses", "mean ΔMRR", "95 % interval", "Wilcoxon p"]
    columns += ["queries", "interval over queries", "p over queries"]
    note = (
        "MRR per graph, graphs that either was trained on left out. A difference below 0.0005 is a tie: published "
        "figures have three decimals. The first interval and Wilcoxon's test draw graphs, the second interval and test "
        "queries inside each graph. Nobody publishes ranks, so published figures are compared over graphs only."
    )
    return Table("comparisons", "Paired comparison", columns, rows, note)


def _ranks_of(first: Run, second: Run, graphs: Sequence[str]) -> QueryComparison | None:
    missing = Path()
    return compare_queries(*([run.ranks.get(g, missing) for g in graphs] for run in (first, second)))


def _over_graphs(first: str, second: str, ours: Sequence[float], theirs: Sequence[float]) -> list[str]:
    c = compare(ours, theirs)
    counts = [str(n) for n in (c.graphs, c.wins, c.ties, c.losses)]
    interval = interval_text(c.interval, sign=True)
    return [f"{first} − {second}", *counts, f"{c.mean_difference:+.4f}", interval, p_text(c.p_value)]


def _over_queries(found: QueryComparison | None, graphs: int) -> list[str]:
    if found is None:
        return ["", "", ""]
    fewer = "" if found.graphs == graphs else f" of {found.graphs} graphs"
    return [f"{found.queries:,}{fewer}", interval_text(found.interval, sign=True), p_text(found.p_value)]
