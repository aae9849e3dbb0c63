"""`gamma bench`: the speed of this machine as ratios, on screen and as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer


def bench(
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder that holds fb15k237/; GAMMA_DATA, or a generated graph, if left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write the JSON record to this file.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds at a time; the best of all counts.")] = 30,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; what torch takes if left out.")] = None,
    growth: Annotated[bool, typer.Option("--growth", help="Also grow to 10^7 triples: some minutes, 10 GB.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, and no table.")] = False,
    local: Annotated[
        bool,
        typer.Option("--local", help="Only local answers, against whole graphs; with --growth to 10^7 triples."),
    ] = False,
    queries: Annotated[
        bool, typer.Option("--queries", help="Only logical queries of three steps, against torch.")
    ] = False,
    store: Annotated[
        list[Path] | None, typer.Option(help="With --local: also time queries on this graph; may be repeated.")
    ] = None,
) -> None:
    """Propagation, layers, queries and a training step, measured against a dense GEMM of the same machine."""
    import torch

    from gamma_kg.bench.suite import run_bench
    from gamma_kg.io.atomic import write_text
    from gamma_kg.io.output import check_file

    if out is not None:
        check_file(out)

    def tell(what: str) -> None:
        print(f"measuring: {what}", file=sys.stderr, flush=True)

    num_threads = threads or torch.get_num_threads()
    if local:
        from gamma_kg.bench.local_queries import run_local_bench

        record = run_local_bench(
            data_dir, store or [], rounds=rounds, num_threads=num_threads, growth=growth, tell=tell
        )
    elif queries:
        from gamma_kg.bench.logical_queries import run_query_bench

        record = run_query_bench(data_dir, rounds=rounds, num_threads=num_threads, tell=tell)
    else:
        record = run_bench(data_dir, rounds=rounds, num_threads=num_threads, growth=growth, tell=tell)
    text = json.dumps(record, indent=2, ensure_ascii=False)
    if out is not None:
        write_text(out, text + "\n")
    if as_json:
        print(text)
    elif local:
        show_local(record)
    elif queries:
        for graph, taken in record["seconds"].items():
            for name, seconds in taken.items():
                print(f"{graph}, {name}: {1e3 * seconds:.2f} ms a query")
        for name, value in record["values"].items():
            print(f"{name}: {value:.2f}")
    else:
        show(record)


def show_local(record: dict[str, Any]) -> None:
    """Local answers: the record as tables."""
    from rich.console import Console
    from rich.table import Table

    ratios = Table("graph", "triples of a neighbourhood", "queries/s, local", "whole", "times", "to reach")
    for row in record["ratios"]:
        rates = (f"{row[name]:.2f}" if row[name] < 10 else f"{row[name]:,.0f}" for name in ("local", "whole"))
        ratios.add_row(row["graph"], f"{row['triples']:,}", *rates, f"{row['ratio']:.1f}", f"{row['aim']:.0f}")
    grown = Table(
        "triples", "entities", "opening, s", "first of a relation, s", "a query, ms", "processor, ms", "own memory, MB"
    )
    for row in record["growth"]:
        memory = f"{row['own bytes'] / 2**20:,.0f}" if "own bytes" in row else ""
        counts = f"{row['triples']:,}", f"{row['entities']:,}", f"{row['opening']:.2f}", f"{row['first']:.2f}"
        grown.add_row(*counts, *(f"{1e3 * row[name]:.1f}" for name in ("seconds", "processor seconds")), memory)
    for table in (ratios, grown):
        if table.row_count:
            Console().print(table)


def show(record: dict[str, Any]) -> None:
    """The record as tables."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    machine, graph = record["machine"], record["graph"]
    console.print(f"{machine['cpu']}, {machine['threads']} threads, {machine['engine']}, torch {machine['torch']}")
    console.print(f"{graph['name']}: {graph['entities']:,} entities, {graph['triples']:,} triples\n")
    if record["busy"]:
        console.print(
            "[bold]Other programs were running: these numbers, and what they seem to reach, mean little.[/bold]\n"
        )
    times = Table("per query, D = 64", "ms", "GEMM units", "ms, one thread")
    seconds, single = record["seconds"]["threads"], record["seconds"]["one thread"]
    for name, value in seconds.items():
        of_one = f"{1e3 * single[name]:.2f}" if name in single else ""
        times.add_row(name, f"{1e3 * value:.2f}", f"{value / seconds['unit']:.2f}", of_one)
    for name, value in record["seconds"]["plain torch"].items():
        times.add_row(f"plain torch {name}", f"{1e3 * value:.0f}", f"{value / seconds['unit']:.0f}", "")
    console.print(times)

    facts = Table("what", "value")
    for part in ("scaling", "bounds"):
        for name, value in record[part].items():
            facts.add_row(f"{part}: {name}", f"{value:.2f}")
    for name, values in record["queries"].items():
        facts.add_row(f"{name}: queries per second", f"{values['queries per second']:.1f}")
        facts.add_row(f"{name}: relation pass", f"{values['ms per relation pass']:.1f} ms")
    step = record["training step"]
    facts.add_row("training step, forward and backward", f"{step['forward'] + step['backward']:.3f} s")
    for name, value in record["start"].items():
        facts.add_row(f"start: {name}", f"{value:.2f} s")
    for row in record.get("growth", []):
        memory = f", {row['peak bytes'] / 1e9:.2f} GB" if "peak bytes" in row else ""
        facts.add_row(f"{row['triples']:,} triples", f"{row['seconds']:.2f} s a query{memory}")
    console.print(facts)

    aims = Table("to reach", "value", "limit", "")
    for aim in record["targets"]:
        aims.add_row(
            aim["name"], f"{aim['value']:.2f}", f"{aim['kind']} {aim['limit']}", "✓" if aim["reached"] else "✗"
        )
    console.print(aims)
