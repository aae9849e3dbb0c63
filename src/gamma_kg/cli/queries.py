"""`gamma queries`: sets of logical queries with their answers; and `gamma evaluate --task queries`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gamma_kg.cli.progress_bar import progress_bar
from gamma_kg.cli.saying import say

app = typer.Typer(help="Logical queries: sample sets of them from a benchmark.", no_args_is_help=True)
DEFAULT_PER_TYPE = 50


@app.callback()
def queries() -> None:
    """Logical queries: sample sets of them from a benchmark."""


@app.command()
def make(
    dataset: Annotated[str, typer.Argument(help="A name (`gamma datasets` lists them), a folder, or pykeen:NAME.")],
    per_type: Annotated[int, typer.Option("--per-type", help="Queries of each shape and balance.")] = DEFAULT_PER_TYPE,
    split: Annotated[str, typer.Option(help="test or valid: whose facts are held out.")] = "test",
    shape: Annotated[
        list[str] | None, typer.Option(help="1p 2p 3p 2i 3i pi ip 2u up 2in 3in inp pin pni; all if left out.")
    ] = None,
    max_answers: Annotated[int, typer.Option(help="Leave out queries with more answers than this.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same queries.")] = 0,
    out: Annotated[Path | None, typer.Option(help="The .jsonl file to write; else DATASET-queries.jsonl.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Folder with one sub-folder per set; GAMMA_DATA or the cache if left out."),
    ] = None,
) -> None:
    """Sample queries of 14 shapes with easy answers (follow from the graph) and hard ones (need held-out facts).

    The classic balance takes queries as they come. The balance `unseen` has queries with answers for which ALL links
    must be predicted, which most classic ones do not need.
    """
    from gamma_kg.data.benchmark import load_benchmark
    from gamma_kg.errors import ConfigError
    from gamma_kg.evaluation.logical import graph_of, sampled
    from gamma_kg.logic.lists import SHAPES
    from gamma_kg.logic.query_files import write_queries

    if per_type < 1:
        raise ConfigError(f"--per-type must be at least 1, got {per_type}")
    benchmark = load_benchmark(dataset, data_dir)
    numbers = benchmark.split(split)
    shapes = tuple(shape or SHAPES)
    with progress_bar("sampling", "shapes") as progress:
        found = sampled(numbers, per_type, seed, shapes=shapes, max_answers=max_answers, progress=progress)
    path = out or Path(f"{benchmark.name}-queries.jsonl")
    origin = {
        "dataset": benchmark.name,
        "split": split,
        "seed": seed,
        "per_type": per_type,
        "max_answers": max_answers,
        "data": benchmark.data_hash(split),
    }
    write_queries(path, found, graph_of(numbers), origin)
    for balance in ("classic", "unseen"):
        members = [query for query in found if query.balance == balance]
        counts = {name: sum(query.shape == name for query in members) for name in shapes}
        few = ", ".join(f"{name} {count}" for name, count in counts.items() if count < per_type)
        print(f"{balance}: {len(members):,} queries, {sum(len(query.ranked) for query in members):,} answers to rank")
        if few:
            say(f"fewer than {per_type} {balance} queries of {few}")
    say(f"queries in {path}")


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
    json_lines: bool,
) -> None:
    """`gamma evaluate --task queries`: one table per set and balance, a row per model."""
    from gamma_kg.evaluation.logical import contestant, evaluate_queries, graph_of, sampled
    from gamma_kg.io.atomic import write_text
    from gamma_kg.logic.fuzzy import logic_named
    from gamma_kg.logic.query_files import read_query_set

    connectives = logic_named(logic)
    contestants = [contestant(name, memory=memory, local=local, device=device) for name in models]
    for benchmark in benchmarks:
        numbers = benchmark.split(split)
        kg = graph_of(numbers)
        asked = sampled(numbers, per_type, seed) if query_file is None else read_query_set(query_file, kg, split)
        results = []
        for one in contestants:
            with progress_bar(f"{benchmark.name}, {one.name}", "queries") as progress:
                found = evaluate_queries(asked, one.projector(kg), logic=connectives, memory=memory, progress=progress)
            origin = {"task": "queries", "dataset": benchmark.name, "split": split, "logic": logic, "seed": seed}
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
