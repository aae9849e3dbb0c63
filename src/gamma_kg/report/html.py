"""The report as one HTML page that needs nothing else: style, tables and plots are inside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import combinations

from gamma_kg.analysis.halflinks import STRATA
from gamma_kg.analysis.patterns import PATTERNS
from gamma_kg.drawing.charts import colours_of, difference_bars, grouped_bars
from gamma_kg.report.published import PAPER_MODELS, published
from gamma_kg.report.runs import Run, common_graphs, paper_groups, runs_with_strata, stratum_results
from gamma_kg.report.table import GROUP_TITLES, Table
from gamma_kg.report.tables import report_tables

STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --faint: #6a7280; --rule: #d5d9e0; --paper: #fff; --stripe: #f4f6f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ec; --faint: #9aa3b0; --rule: #3a414c; --paper: #171a20; --stripe: #1f242c; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
       max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem; }
th, td { padding: .22rem .6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
thead th { border-bottom: 2px solid var(--rule); } tbody tr:nth-child(even) td { background: var(--stripe); }
p.note, footer { color: var(--faint); font-size: .85rem; max-width: 60rem; }
svg { max-width: 100%; height: auto; margin: .8rem 0; } svg text { fill: var(--ink); }
svg .axis { stroke: var(--faint); } svg .grid { stroke: var(--rule); }
"""


def render_html(runs: Sequence[Run]) -> str:
    """The whole page."""
    models = "".join(
        f"<li><b>{escape(run.name)}</b>: {escape(run.description)} <code>{run.model_hash[:12]}</code></li>"
        for run in runs
    )
    body = [f"<h1>Zero-shot link prediction</h1><ul>{models}</ul>", *_plots(runs)]
    body += [_table(table) for table in report_tables(runs)]
    footer = f"<footer>Published figures: {escape(published().origin)} {escape(published().corrections)}</footer>"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>GAMMA report</title>'
    page = f"<head>{head}<style>{STYLE}</style></head><body>{''.join(body)}{footer}</body>"
    return f'<!doctype html>\n<html lang="en">{page}</html>\n'


def _plots(runs: Sequence[Run]) -> Iterator[str]:
    # A model has one colour on the whole page.
    colours = colours_of([*(run.name for run in runs), *(f"{model} (paper)" for model in PAPER_MODELS)])
    groups = {group: graphs for group, graphs in paper_groups(common_graphs(runs)).items() if graphs}
    if groups:
        means = {run.name: [_average(run.values(graphs)) for graphs in groups.values()] for run in runs}
        for model in PAPER_MODELS:
            figures = [[published().results[g][model]["mrr"] for g in graphs] for graphs in groups.values()]
            means[f"{model} (paper)"] = [_average(values) for values in figures]
        titles = [f"{GROUP_TITLES[group]} ({len(graphs)})" for group, graphs in groups.items()]
        yield grouped_bars(titles, means, "Mean MRR per group, on the graphs that all have", colours)
    for by, strata in (("pattern", PATTERNS), ("halflink", STRATA)):
        have = runs_with_strata(runs, by)
        graphs = common_graphs(have) if have else []
        series = {
            run.name: [_average([e["mrr"] for e in stratum_results(run, by, s, graphs)]) for s in strata]
            for run in have
        }
        if graphs:
            labels = [stratum.replace(" seen", "") for stratum in strata]
            yield grouped_bars(labels, series, f"MRR by {by}, mean over graphs", colours)
    for first, second in combinations(runs, 2):
        graphs = common_graphs([first, second])
        differences = dict(zip(graphs, _minus(first.values(graphs), second.values(graphs)), strict=True))
        yield difference_bars(differences, f"MRR per graph: {first.name} − {second.name}")
    for run in runs:
        if run.is_baseline:
            continue
        graphs = [g for g in common_graphs([run]) if g in published().results]
        for model in PAPER_MODELS if graphs else ():
            theirs = [published().results[g][model]["mrr"] for g in graphs]
            differences = dict(zip(graphs, _minus(run.values(graphs), theirs), strict=True))
            yield difference_bars(differences, f"MRR per graph: {run.name} − {model} (paper)")


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.columns)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>'
    inner = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<h2>{escape(table.title)}</h2><div class="wide"><table>{inner}</table></div>{note}'


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _minus(first: Sequence[float], second: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(first, second, strict=True)]
