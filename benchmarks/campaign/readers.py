"""Every reader against damaged files: `benchmarks/reader_faults.py`, a line for each reader."""

from __future__ import annotations

import json
import os
from pathlib import Path

from campaign.lines import Effort, Line
from campaign.setting import Attempt, Setting

PROGRAM = Path(__file__).resolve().parents[1] / "reader_faults.py"
# Files that went wrong stay, so that they can be looked at.
KEPT = Path(__file__).resolve().parents[2] / "build" / "faults-kept"


def damaged_files(effort: Effort) -> dict[str, Attempt]:
    import reader_faults

    return {f"damaged files: {name}": _read(name) for name in reader_faults.readers()}


def _read(name: str) -> Attempt:
    def attempt(line: Line, setting: Setting) -> None:
        """Forked from what has imported everything: importing takes longer than most readers need."""
        told, effort = setting.folder / "told.json", setting.effort
        words = [str(PROGRAM), "--json", "--count", str(effort.mutations), "--seed", str(effort.seed)]
        words += ["--kept", str(KEPT / name.replace(" ", "-")), "--only", name]
        process = setting.zygote.start(words, setting.folder, dict(os.environ) | {"GAMMA_FAULTS_STDOUT": str(told)})
        process.wait(1800)
        outcome = json.loads(told.read_text() or "null")
        if outcome is None:
            line.expect(False, f"the program ended with {process.returncode}: {process.said()[-400:]}")
        else:
            line.tried, line.wrong, line.remark = outcome["tried"], outcome["wrong"], f"{outcome['refused']:,} refused"

    return attempt
