"""Every reader against damaged files: `benchmarks/reader_faults.py`, a line for each reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from campaign.lines import Effort, Line


def damaged_files(folder: Path, effort: Effort) -> Iterator[Line]:
    import reader_faults

    names = [name for name in reader_faults.readers() if effort.wants(f"damaged files: {name}")]
    for outcome in reader_faults.campaign(effort.mutations, effort.seed, names, folder / "kept"):
        remark = f"{outcome.refused:,} refused"
        yield Line(f"damaged files: {outcome.reader}", outcome.tried, outcome.wrong, remark=remark)
