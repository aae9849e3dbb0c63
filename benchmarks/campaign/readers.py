"""Every reader against damaged files: `benchmarks/reader_faults.py`, a line for each reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from campaign.lines import Effort, Line


def damaged_files(folder: Path, effort: Effort) -> Iterator[Line]:
    import reader_faults

    for name in reader_faults.readers():
        line = Line(f"damaged files: {name}")
        if effort.wants(line.name):
            (folder / "kept").mkdir(exist_ok=True)
            for outcome in reader_faults.campaign(effort.mutations, effort.seed, [name], folder / "kept"):
                line.tried, line.wrong, line.remark = outcome.tried, outcome.wrong, f"{outcome.refused:,} refused"
            yield line
