"""Killed anywhere: a command is stopped at random moments, taken up again, and must end as if nothing had happened."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from campaign.jobs import JOBS, Job, prepare
from campaign.lines import Effort, Line

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
STOPS_IN_A_CHAIN = 3


def killed_anywhere(folder: Path, effort: Effort) -> Iterator[Line]:
    start = folder / "start"
    prepare(start)
    for job in JOBS:
        yield _line(job, start, folder / job.name.replace(" ", ""), effort)


def _line(job: Job, start: Path, folder: Path, effort: Effort) -> Line:
    line = Line(f"killed: {job.name}")
    calm = folder / "calm"
    shutil.copytree(start, calm)
    began = time.monotonic()
    code, said = job.finish(calm)
    if code:
        line.expect(False, f"undisturbed run ended with {code}: {said[-300:]}")
        return line
    whole, expected = time.monotonic() - began, job.outcome(calm)
    line.expect(bool(expected), "an undisturbed run leaves no result")
    rng = random.Random(effort.seed)
    for number in range(effort.kills):
        place = folder / f"chain{number}"
        shutil.copytree(start, place)
        complaint = _chain(job, place, whole, expected, rng)
        line.expect(not complaint, f"chain {number}: {complaint}")
        shutil.rmtree(place)
    return line


def _chain(job: Job, place: Path, whole: float, expected: dict[str, bytes], rng: random.Random) -> str:
    """Stop the job a few times, let it end, and compare; what is wrong, or nothing."""
    go_on = False
    for _ in range(STOPS_IN_A_CHAIN):
        process = job.start(place, go_on)
        time.sleep(rng.random() * whole)
        sign = rng.choice(SIGNALS)
        if process.poll() is None:
            os.kill(process.pid, sign)
        _, said = process.communicate(timeout=120)
        if "Traceback" in said:
            return f"a traceback after {sign.name}: {said[-400:]}"
        if process.returncode == 0:
            break
        go_on = _has_begun(job, place)
    code, said = job.finish(place, go_on) if job.outcome(place) != expected else (0, "")
    if code:
        return f"did not go on: exit {code}, {said[-300:]}"
    found = job.outcome(place)
    if found != expected:
        different = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        return f"differs from an undisturbed run in {', '.join(different[:4])}"
    half = [str(path.relative_to(place)) for path in place.rglob("*.tmp")]
    return f"left half a file: {half[:3]}" if half else ""


def _has_begun(job: Job, place: Path) -> bool:
    """Whether there is something to go on with: a run that was stopped before it wrote anything starts anew."""
    return not job.again or any((place / "run").glob("checkpoints/*")) or (place / "run" / "state.pt").exists()
