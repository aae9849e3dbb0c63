"""A progress bar over the bytes of the files being read, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gamma_kg.data.unpacking import Progress

# Below this a file is read before a bar could be looked at; OBO and RDF of this size take a second or two.
LARGE_BYTES = 10_000_000


@contextmanager
def reading_progress(paths: Sequence[Path | None], wanted: bool | None) -> Iterator[Progress]:
    """A function to call with the number of bytes just read; it draws a bar if that is wanted or useful."""
    total = sum(path.stat().st_size for path in paths if path is not None and path.is_file())
    is_shown = sys.stderr.isatty() and total >= LARGE_BYTES if wanted is None else wanted
    if not is_shown:
        yield lambda num_bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total or None)
        yield lambda num_bytes: bar.update(task, advance=num_bytes)
