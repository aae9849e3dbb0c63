"""Every reader against damaged files: `benchmarks/reader_faults.py`, a line for each reader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from campaign.lines import Effort, Line

PROGRAM = Path(__file__).resolve().parents[1] / "reader_faults.py"
# Files that went wrong stay, so that they can be looked at.
KEPT = Path(__file__).resolve().parents[2] / "build" / "faults-kept"


def reader_names(effort: Effort) -> list[str]:
    import reader_faults

    return [f"damaged files: {name}" for name in reader_faults.readers()]


def damaged_files(folder: Path, effort: Effort) -> Iterator[Line]:
    """In a process of its own: it forks, and must not have used polars before."""
    import reader_faults

    names = [name for name in reader_faults.readers() if effort.wants(f"damaged files: {name}")]
    words = [sys.executable, str(PROGRAM), "--json", "--count", str(effort.mutations), "--seed", str(effort.seed)]
    words += ["--kept", str(KEPT), *(word for name in names for word in ("--only", name))]
    if not names:
        return
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            told = json.loads(text)
            names.remove(told["reader"])
            remark = f"{told['refused']:,} refused"
            yield Line(f"damaged files: {told['reader']}", told["tried"], told["wrong"], remark=remark)
    for name in names:
        yield Line(f"damaged files: {name}", 1, [f"the campaign of readers ended with {process.returncode}"])
