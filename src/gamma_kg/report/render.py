"""Tables as terminal text, Markdown, CSV and LaTeX. `FORMATS` lists the renderers by name."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

from gamma_kg.errors import ConfigError, did_you_mean
from gamma_kg.report.html import render_html
from gamma_kg.report.public_runs import graphs_with, public_models, public_name
from gamma_kg.report.published import PAPER_MODELS, published
from gamma_kg.report.runs import Run
from gamma_kg.report.table import Table
from gamma_kg.report.tables import report_tables

LATEX_SPECIAL = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "−": "$-$", "Δ": r"$\Delta$"}
LATEX_SPECIAL |= {"…": r"\ldots{}", "<": "$<$", "×": r"$\times$"}
CSV_METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "mr", "amri")


def render(runs: Sequence[Run], format_name: str) -> str:
    """The whole report in one of `FORMATS`."""
    if format_name not in FORMATS:
        hint = did_you_mean(format_name, FORMATS)
        raise ConfigError(f"no report format {format_name!r}{hint}; formats: {', '.join(FORMATS)}")
    return FORMATS[format_name](runs)


def render_terminal(runs: Sequence[Run]) -> str:
    blocks = []
    for table in report_tables(runs):
        rows = [list(table.columns), *(list(row) for row in table.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
        is_text = [_is_text([row[i] for row in table.rows]) for i in range(len(widths))]
        lines = ["  ".join(_padded(*cell) for cell in zip(row, widths, is_text, strict=True)).rstrip() for row in rows]
        rule = "─" * min(sum(widths) + 2 * (len(widths) - 1), 160)
        blocks.append("\n".join([table.title, rule, lines[0], rule, *lines[1:], rule, table.note]).rstrip())
    return "\n\n".join(blocks) + "\n"


def render_markdown(runs: Sequence[Run]) -> str:
    blocks = ["# Zero-shot link prediction", "Models: " + "; ".join(f"{run.name} ({run.description})" for run in runs)]
    for table in report_tables(runs):
        header = [_markdown_row(table.columns), _markdown_row(["---", *["---:"] * (len(table.columns) - 1)])]
        lines = [*header, *(_markdown_row(row) for row in table.rows)]
        blocks += [f"## {table.title}", "\n".join(lines), table.note]
    blocks.append(f"Published figures: {published().origin} {published().corrections}")
    return "\n\n".join(blocks) + "\n"


def render_csv(runs: Sequence[Run]) -> str:
    """One line per model and graph, published figures included: for whoever reckons on."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    more = ("fair_mrr", "fair_hits@10", "queries", "limit", "seconds", "leakage", "model_hash")
    writer.writerow(["model", "dataset", "group", *CSV_METRICS, *more])
    for run in runs:
        for dataset, result in run.results.items():
            limit = result["limit"]["triples"] if result["limit"] else ""
            fair = (result["fair"]["mrr"], result["fair"]["hits@10"])
            rest = (result["queries"], limit, result["seconds"], result["leakage"], run.model_hash)
            writer.writerow([run.name, dataset, result["group"], *(result[m] for m in CSV_METRICS), *fair, *rest])
    graphs = sorted({dataset for run in runs for dataset in run.results} & published().results.keys())
    for model in PAPER_MODELS:
        for graph in graphs:
            figures = published().results[graph][model]
            values = [figures.get(metric, "") for metric in CSV_METRICS]
            writer.writerow([f"{model} (paper)", graph, _group(runs, graph), *values, *[""] * len(more)])
    at_hand = sorted({dataset for run in runs for dataset in run.results})
    for model in public_models(at_hand):
        for graph in graphs_with(model, at_hand):
            figures = published().reports[model].results[graph]
            values = [figures.get(metric, "") for metric in CSV_METRICS]
            writer.writerow([public_name(model), graph, _group(runs, graph), *values, *[""] * len(more)])
    return stream.getvalue()


def render_latex(runs: Sequence[Run]) -> str:
    """One table environment per table; needs the package booktabs."""
    return "\n\n".join(_latex_table(table) for table in report_tables(runs)) + "\n"


def _latex_table(table: Table) -> str:
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{latex_text(table.title)}. {latex_text(table.note)}}}",
        rf"\label{{tab:gamma-{table.name}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
        r"\toprule",
        " & ".join(latex_text(cell) for cell in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(latex_text(cell) for cell in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def latex_text(text: str) -> str:
    return "".join(LATEX_SPECIAL.get(letter, letter) for letter in text)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _is_text(cells: Sequence[str]) -> bool:
    """Words are read from the left, numbers from the right."""
    return any(cell[:1].isalpha() for cell in cells)


def _padded(cell: str, width: int, is_text: bool) -> str:
    return cell.ljust(width) if is_text else cell.rjust(width)


def _group(runs: Sequence[Run], graph: str) -> str:
    return str(next(run.results[graph]["group"] for run in runs if graph in run.results))


FORMATS: dict[str, Callable[[Sequence[Run]], str]] = {
    "terminal": render_terminal,
    "markdown": render_markdown,
    "csv": render_csv,
    "latex": render_latex,
    "html": render_html,
}
SUFFIXES = {".md": "markdown", ".csv": "csv", ".tex": "latex", ".html": "html", ".htm": "html", ".txt": "terminal"}
