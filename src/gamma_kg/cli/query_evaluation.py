"""`gamma evaluate --task queries`: logical queries answered, and the table of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gamma_kg.cli.progress_bar import progress_bar

DEFAULT_PER_TYPE = 50


def evaluate_sets(
    benchmarks: Sequence[Any],
    models: Sequence[str | None],
    *,
    split: str,
    per_type: int,
    seed: int,
    query_file: Path | None,
    logic: str,
    out: Path | None,
    memory: str | None,
    device: str,
    local: str,
    rules: bool,
    json_lines: bool,
) -> None:
    """`gamma evaluate --task queries`: one table per set and balance, a row per model."""
    from gamma_kg.evaluation.logical import contestant, evaluate_queries, sampled
    from gamma_kg.evaluation.split_graph import graph_of
    from gamma_kg.io.atomic import write_text
    from gamma_kg.logic.fuzzy import logic_named
    from gamma_kg.logic.query_sets import read_query_set

    connectives = logic_named(logic)
    contestants = [contestant(name, memory=memory, local=local, rules=rules, device=device) for name in models]
    for benchmark in benchmarks:
        numbers = benchmark.split(split)
        kg = graph_of(numbers)
        asked = sampled(numbers, per_type, seed) if query_file is None else read_query_set(query_file, kg, split)
        results = []
        for one in contestants:
            with progress_bar(f"{benchmark.name}, {one.name}", "queries") as progress:
                found = evaluate_queries(asked, one.projector(kg), logic=connectives, memory=memory, progress=progress)
            origin = {"task": "queries", "dataset": benchmark.name, "split": split, "logic": logic, "seed": seed}
            origin["rules"] = rules
            results.append({**origin, "model": {"name": one.name, "hash": one.hash}, **found})
            if json_lines:
                print(json.dumps(results[-1], ensure_ascii=False), flush=True)
        if not json_lines:
            print_results(results, benchmark.name)
        if out is not None:
            write_text(out / f"{benchmark.name}.queries.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def print_results(results: Sequence[Mapping[str, Any]], name: str) -> None:
    """MRR of hard answers per shape, the two means, Hits@10 and the error of cardinality."""
    from gamma_kg.logic.lists import NEGATED, POSITIVE

    titles = {
        "classic": "classic balance",
        "unseen": "balance unseen: answers for which all links must be predicted",
    }
    for balance, title in titles.items():
        shown = [shape for shape in (*POSITIVE, *NEGATED, "other") if any(shape in r[balance] for r in results)]
        if not shown:
            continue
        print(f"{name}, {title}: MRR of hard answers")
        print(f"{'model':<18}" + "".join(f"{c:>7}" for c in ("EPFO", "neg.", "h@10", "card.")) + _cells(shown))
        for result in results:
            rows = result[balance]
            epfo, negation = rows.get("epfo", {}), rows.get("negation", {})
            means = (epfo.get("mrr"), negation.get("mrr"), epfo.get("hits@10"), epfo.get("cardinality_error"))
            values = [None if shape not in rows else rows[shape]["mrr"] for shape in shown]
            print(f"{result['model']['name'][:17]:<18}" + "".join(f"{_number(v):>7}" for v in means) + _cells(values))
        print(f"{sum(results[0][balance][shape]['queries'] for shape in shown):,.0f} queries", flush=True)


def _cells(values: Sequence[Any]) -> str:
    return " " + "".join(f"{value if isinstance(value, str) else _number(value):>6}" for value in values)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
