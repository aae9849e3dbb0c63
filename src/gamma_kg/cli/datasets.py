"""`gamma datasets`: the benchmark graphs by name; `gamma datasets fetch` brings them here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gamma_kg.cli.evaluate import DataDirOption

if TYPE_CHECKING:
    from gamma_kg.data.download import Listener

app = typer.Typer(help="Benchmark graphs: list them, fetch them.", add_completion=False)


@app.callback(invoke_without_command=True)
def datasets(
    context: typer.Context,
    group: Annotated[str, typer.Option(help="Only inductive-er, inductive-e or transductive.")] = "all",
    data_dir: DataDirOption = None,
    json_lines: Annotated[bool, typer.Option("--json", help="One JSON object per set on stdout.")] = False,
) -> None:
    """List all benchmark graphs: what is cached, sizes, group, licence."""
    if context.invoked_subcommand is not None:
        return
    from gamma_kg.data.catalog import cached_files, data_folder, in_group

    folder = data_folder(data_dir)
    entries = in_group(group)
    if not json_lines:
        print(f"folder {folder}")
        print(
            f"{'name':<16}{'group':<14}{'here':<7}{'entities':>9}{'relations':>10}{'triples':>11}{'test':>8}  licence"
        )
    num_here = 0
    for entry in entries:
        here, test = cached_files(entry, folder), entry.counts["test"]
        state = "yes" if len(here) == len(entry.files) else "part" if here else "no"
        num_here += state != "no"
        if json_lines:
            sizes = {"cached": here, "bytes": sum((folder / entry.slug / name).stat().st_size for name in here)}
            record = {"name": entry.slug, "title": entry.name, "group": entry.group, "counts": entry.counts, **sizes}
            more = {
                "licence": entry.licence,
                "ultra_task": entry.ultra_task,
                "leakage": entry.leakage,
                "leaked": entry.leaked,
                "note": entry.note,
            }
            urls = sorted({url for part in entry.downloads for url in part.urls})
            print(json.dumps(record | more | {"urls": urls}, ensure_ascii=False))
            continue
        print(
            f"{entry.slug:<16}{entry.group:<14}{state:<7}{test['entities']:>9,}{test.get('relations', 0) or '?':>10}"
            f"{test['triples']:>11,}{test['queries']:>8,}  {entry.licence}"
        )
    if not json_lines:
        print(f"{len(entries)} sets, {num_here} of them here; sizes are those of the graph seen at test time")


@app.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Names of sets.")] = None,
    group: Annotated[str | None, typer.Option(help="All sets of a group, or all.")] = None,
    data_dir: DataDirOption = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch files again that are here already.")] = False,
) -> None:
    """Download sets, check them and put them into the common layout. A download that was stopped goes on."""
    from gamma_kg.data.benchmark import load_benchmark
    from gamma_kg.data.catalog import data_folder, dataset, in_group
    from gamma_kg.data.download import fetch as fetch_set
    from gamma_kg.errors import ConfigError

    entries = [dataset(name) for name in names or []] + (in_group(group) if group else [])
    if not entries:
        raise ConfigError("nothing to fetch: name sets, or give a --group")
    folder = data_folder(data_dir)
    for entry in entries:
        with _bar() as listener:
            written = fetch_set(entry, folder, listener, force=force)
        load_benchmark(entry.slug, folder)
        state = f"fetched {', '.join(written)}" if written else "already here"
        print(f"{entry.slug}: {state} → {folder / entry.slug} (licence: {entry.licence})", flush=True)


@contextmanager
def _bar() -> Iterator[Listener | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, object] = {}

        def listen(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(Path(name.replace("%2F", "/")).name[:30], total=total)
            bars.update(tasks[name], completed=done, total=total)  # type: ignore[arg-type]

        yield listen
