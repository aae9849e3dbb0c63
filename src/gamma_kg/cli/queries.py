"""`gamma queries`: sets of logical queries with their answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.progress_bar import progress_bar
from gamma_kg.cli.query_evaluation import DEFAULT_PER_TYPE
from gamma_kg.cli.saying import say

app = typer.Typer(help="Logical queries: sample sets of them from a benchmark.", no_args_is_help=True)


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
    from gamma_kg.evaluation.logical import sampled
    from gamma_kg.evaluation.split_graph import graph_of
    from gamma_kg.io.output import check_file
    from gamma_kg.logic.lists import SHAPES
    from gamma_kg.logic.query_sets import write_queries

    if per_type < 1:
        raise ConfigError(f"--per-type must be at least 1, got {per_type}")
    benchmark = load_benchmark(dataset, data_dir)
    path = out or Path(f"{benchmark.name}-queries.jsonl")
    check_file(path)
    numbers = benchmark.split(split)
    shapes = tuple(shape or SHAPES)
    with progress_bar("sampling", "shapes") as progress:
        found = sampled(numbers, per_type, seed, shapes=shapes, max_answers=max_answers, progress=progress)
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
