"""`gamma evaluate`: filtered ranking on benchmark graphs or a folder of the user's own."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gamma_kg.cli.options import DeviceOption, MemoryOption, ModelOption

if TYPE_CHECKING:
    from gamma_kg.data.benchmark import Benchmark
    from gamma_kg.evaluation.benchmark import Progress

DataDirOption = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder with one sub-folder per set; GAMMA_DATA or the cache if left out."),
]
COLUMNS = ("mrr", "hits@1", "hits@3", "hits@10")


def evaluate(
    datasets: Annotated[
        list[str] | None, typer.Argument(help="Names (`gamma datasets` lists them), folders, or pykeen:NAME.")
    ] = None,
    model: ModelOption = None,
    group: Annotated[
        list[str] | None, typer.Option(help="inductive-er, inductive-e, transductive or all; sets at hand only.")
    ] = None,
    split: Annotated[str, typer.Option(help="test or valid.")] = "test",
    limit: Annotated[
        int | None, typer.Option(help="Rank only so many triples (queries: of each shape), drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that draw.")] = 0,
    task: Annotated[
        str,
        typer.Option(
            help="both directions, tail, relation; queries (logical ones); ultra: tails where ULTRA's README has them."
        ),
    ] = "both",
    published_filter: Annotated[
        bool,
        typer.Option("--published-filter", help="Filter validation by test triples too, as the published code does."),
    ] = False,
    by: Annotated[list[str] | None, typer.Option(help="Also split results by pattern or halflink.")] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="Rank last what contradicts the graph's own patterns, as predict does.")
    ] = False,
    beside: Annotated[
        list[str] | None,
        typer.Option(help="queries: further models; also traversal, frequency. MODEL@0.8 sets a threshold."),
    ] = None,
    query_set: Annotated[
        Path | None, typer.Option("--queries", help="queries: a set made by `gamma queries make`, or a BetaE folder.")
    ] = None,
    logic: Annotated[str, typer.Option(help="queries: product, godel or lukasiewicz.")] = "product",
    out: Annotated[Path | None, typer.Option(help="Folder for results; a run that was stopped goes on there.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace results in --out instead of keeping them.")] = False,
    data_dir: DataDirOption = None,
    memory: MemoryOption = None,
    device: DeviceOption = "cpu",
    json_lines: Annotated[bool, typer.Option("--json", help="One JSON object per graph on stdout.")] = False,
    local: Annotated[
        str,
        typer.Option(
            help="Rank answers from neighbourhoods: auto (on large graphs, as predict), or triples of each; off: never."
        ),
    ] = "off",
) -> None:
    """Rank the test triples of each set among all entities, known facts filtered out.

    MRR and Hits count a tie against the model, as the published tables do; "fair" shares it. Under torchrun the
    queries are dealt out to the processes.
    """
    from gamma_kg.evaluation.benchmark import evaluate_benchmark
    from gamma_kg.evaluation.options import EvaluationOptions
    from gamma_kg.evaluation.store import plain
    from gamma_kg.machine.processes import join_processes
    from gamma_kg.predicting.models import resolve_model

    if task == "queries":
        from gamma_kg.cli.query_evaluation import DEFAULT_PER_TYPE, evaluate_sets

        evaluate_sets(
            _find(datasets or [], group or [], data_dir, split),
            [model, *(beside or [])],
            split=split,
            per_type=limit or DEFAULT_PER_TYPE,
            seed=seed,
            query_file=query_set,
            logic=logic,
            out=out,
            memory=memory,
            device=device,
            local=local,
            rules=rules,
            json_lines=json_lines,
        )
        return
    options = EvaluationOptions(
        split=split,
        task=task,
        limit=limit,
        seed=seed,
        memory=memory,
        by=by or (),
        published_filter=published_filter,
        rules=rules,
        local=local,
    )
    benchmarks = _find(datasets or [], group or [], data_dir, split)
    with join_processes(device) as processes:
        named = resolve_model(model, device)
        shown = processes.is_first
        if shown and not json_lines:
            print(f"model {named.name}: {named.description}; {split} split")
            if limit:
                print(f"SAMPLE: at most {limit} triples of each set (seed {seed}), not the whole {split} split")
            if local != "off":
                print(f"LOCAL: answers from neighbourhoods (--local {local}), not from whole graphs")
            print(_row("graph", *COLUMNS, "fair", "mr", "amri", "queries", "s", "q/s"))
        results = []
        # An orderly stop saves what was ranked, like Ctrl-C does.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        with _progress(len(benchmarks), shown) as (progress, say, graph_done):
            for benchmark in benchmarks:
                result = evaluate_benchmark(
                    benchmark, named, options, out=out, fresh=fresh, processes=processes, progress=progress
                )
                results.append(result)
                if shown:
                    say(json.dumps(plain(result), ensure_ascii=False) if json_lines else _result_row(result))
                    if not json_lines:
                        for stratum in _strata_rows(result):
                            say(stratum)
                graph_done()
        if shown and not json_lines and len(results) > 1:
            _print_means(results)


def _find(datasets: list[str], groups: list[str], data_dir: Path | None, split: str) -> list[Benchmark]:
    """All sets up front, so that a missing or damaged one stops the run before it starts."""
    from gamma_kg.data.benchmark import load_benchmark
    from gamma_kg.data.catalog import data_folder, in_group
    from gamma_kg.errors import ConfigError

    folder = data_folder(data_dir)
    benchmarks = {name: load_benchmark(name, data_dir) for name in datasets}
    for benchmark in benchmarks.values():
        benchmark.data_hash(split)
    for group in groups:
        absent = []
        for entry in in_group(group):
            needed = {
                f"{part}.txt" for part in (entry.protocol.graph["test"], entry.protocol.graph[split], "test", split)
            }
            if all((folder / entry.slug / name).is_file() for name in needed):
                benchmarks.setdefault(entry.slug, load_benchmark(entry.slug, data_dir))
            else:
                absent.append(entry.slug)
        if absent and os.environ.get("RANK", "0") == "0":
            print(f"gamma: left out, not in {folder}: {', '.join(absent)}", file=sys.stderr)
    if not benchmarks:
        raise ConfigError("nothing to evaluate: name sets or folders, or a --group whose sets are at hand")
    return list(benchmarks.values())


def _row(name: str, *cells: str) -> str:
    widths = (7, 7, 7, 8, 7, 9, 7, 8, 8, 8)
    return f"{name:<24}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _result_row(result: dict[str, Any]) -> str:
    shown = [f"{result[name]:.4f}" for name in COLUMNS]
    amri = "" if result["amri"] is None else f"{result['amri']:.3f}"
    rate = result["queries_per_second"]
    return _row(
        result["dataset"],
        *shown,
        f"{result['fair']['mrr']:.4f}",
        f"{result['mr']:.1f}",
        amri,
        f"{result['queries']:,}",
        f"{result['seconds']:.1f}",
        f"{rate:.0f}" if rate else "",
    )


def _strata_rows(result: dict[str, Any]) -> Iterator[str]:
    for by, strata in result["by"].items():
        for name, stratum in strata.items():
            if stratum["queries"]:
                counts = f"{stratum['triples']:,} triples, {stratum['queries']:,} queries"
                label = f"{by}: {name}"
                yield f"  {label:<32} mrr {stratum['mrr']:.4f}  hits@10 {stratum['hits@10']:.4f}  ({counts})"


def _print_means(results: list[dict[str, Any]]) -> None:
    from gamma_kg.data.catalog import GROUPS

    sets = {group: [r for r in results if r["group"] == group] for group in (*GROUPS, "own")}
    sets["all"] = results
    for group, members in sets.items():
        if members and (group == "all" or len(members) < len(results)):
            mean = {name: sum(r[name] for r in members) / len(members) for name in COLUMNS}
            fair = sum(r["fair"]["mrr"] for r in members) / len(members)
            cells = [f"{mean[name]:.4f}" for name in COLUMNS]
            print(_row(f"mean {group} ({len(members)})", *cells, f"{fair:.4f}", "", "", "", "", ""))


@contextmanager
def _progress(num_graphs: int, shown: bool) -> Iterator[tuple[Progress, Any, Any]]:
    """Bars over graphs and queries on stderr; yields the listener, how to print a line, and what ends a graph."""
    from gamma_kg.evaluation.benchmark import Progress

    if not shown or not sys.stderr.isatty():
        yield Progress(), lambda line: print(line, flush=True), lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description:<16}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        graphs = bars.add_task("graphs", total=num_graphs)
        queries = bars.add_task("queries", total=None)

        class Shown(Progress):
            def graph(self, name: str, total: int, done: int) -> None:
                bars.reset(queries, total=total, completed=done, description=name)

            def advance(self, count: int) -> None:
                bars.advance(queries, count)

        yield Shown(), lambda line: _print_above(bars, line), lambda: bars.advance(graphs)


def _print_above(bars: Any, line: str) -> None:
    """A result line on stdout while bars are drawn on stderr: both may be the same terminal."""
    bars.stop()
    print(line, flush=True)
    bars.start()
