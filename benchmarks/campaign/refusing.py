"""What hostile input must come to: one line, exit code 2, soon and in little memory; and what odd input may come to."""

from __future__ import annotations

import subprocess
from pathlib import Path

from campaign.jobs import environment
from campaign.lines import Line
from campaign.zygote import Child, Zygote

# Seconds of the processor, so that a busy machine does not count as a hang; and of the clock, after which it is one.
MAX_SECONDS, MAX_WAIT, MAX_MB = 20.0, 300.0, 2048


def refused(line: Line, what: str, words: list[str], folder: Path, zygote: Zygote, wait: float = MAX_WAIT) -> str:
    """Expects one line, exit code 2, soon and in little memory."""
    process = _ended(line, what, words, folder, zygote, wait)
    if process is None:
        return ""
    said = process.said()
    errors = [text for text in said.splitlines() if text.startswith("gamma: ")]
    line.expect(process.returncode == 2, f"{what}: exit code {process.returncode}: {said[-300:]}")
    line.expect("Traceback" not in said and bool(errors), f"{what}: said {said[-300:]}")
    line.expect(process.peak_mb < MAX_MB, f"{what}: {process.peak_mb:.0f} MB")
    line.expect(process.cpu_seconds < MAX_SECONDS, f"{what}: {process.cpu_seconds:.0f} s")
    line.remark = f"at most {max(process.peak_mb, float((line.remark or 'at most 0').split()[2])):.0f} MB"
    return said


def ends_well(line: Line, what: str, code: int | None, said: str, wanted: tuple[int, ...]) -> None:
    """Expects one of these exit codes, no traceback, and with 2 a line that says why."""
    line.expect(code in wanted, f"{what}: exit code {code}: {said[-300:]!r}")
    told = any(text.startswith("gamma: ") for text in said.splitlines())
    line.expect("Traceback" not in said and (code != 2 or told), f"{what}: said {said[-400:]!r}")


def runs_well(line: Line, what: str, words: list[str], place: Path, zygote: Zygote, wanted: tuple[int, ...]) -> None:
    process = _ended(line, what, words, place, zygote, MAX_WAIT)
    if process is not None:
        ends_well(line, what, process.returncode, process.said(), wanted)


def _ended(line: Line, what: str, words: list[str], place: Path, zygote: Zygote, wait: float) -> Child | None:
    """The command when it has ended; one that does not end is a try that went wrong."""
    process = zygote.start(words, place, environment(place))
    try:
        process.wait(wait)
    except subprocess.TimeoutExpired:
        process.kill()
        line.expect(False, f"{what}: no end after {wait:.0f} s")
        return None
    return process
