"""A few of each line of the fault campaign; `python benchmarks/faults.py` runs all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from campaign.killing import killed_anywhere  # noqa: E402
from campaign.lines import Effort, Line, Part  # noqa: E402
from campaign.sharing import full_disk, two_at_once  # noqa: E402
from campaign.threads import many_threads  # noqa: E402

FEW = Effort(kills=1, mutations=20, races=1, threads=4)


@pytest.mark.parametrize(
    "part", [killed_anywhere, two_at_once, full_disk, many_threads], ids=lambda part: part.__name__
)
def test_nothing_is_lost_and_nothing_hangs(part: Part, tmp_path: Path) -> None:
    lines = list(part(tmp_path, FEW))
    assert sum(line.tried for line in lines) > 0 or all(line.skipped for line in lines)
    assert [f"{line.name}: {complaint}" for line in lines for complaint in line.wrong] == []


def test_a_line_counts_what_is_wrong() -> None:
    line = Line("x")
    line.expect(True, "no")
    line.expect(False, "the reason")
    assert (line.tried, line.wrong) == (2, ["the reason"]) and "2 tried" in str(line) and "1 wrong" in str(line)


def test_the_campaign_is_a_program() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARKS / "faults.py"), "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--short" in done.stdout
