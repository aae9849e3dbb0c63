"""A progress bar with the time left, on standard error; silent where that is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from gamma_kg.cli.saying import is_quiet


@contextmanager
def progress_bar(title: str, unit: str, budget: float | None = None) -> Iterator[Callable[[int, int], None]]:
    """A function to call with (done, in all). With a `budget` in seconds, no more time than that is said to be left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        def render(self, task: Task) -> Text:
            bounds = [task.time_remaining, None if budget is None else max(0.0, budget - (task.elapsed or 0.0))]
            known = [bound for bound in bounds if bound is not None]
            return Text(str(timedelta(seconds=int(min(known)))) if known else "-:--:--", style="progress.remaining")

    console = Console(stderr=True)
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit},"),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeLeft(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, transient=True, disable=is_quiet() or not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
