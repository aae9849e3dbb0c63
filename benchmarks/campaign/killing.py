"""Killed anywhere: a command is stopped at random moments, taken up again, and must end as if nothing had happened."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from campaign.jobs import Job, different, half_files, orphans
from campaign.killed_server import killed_server
from campaign.lines import Effort, Line
from campaign.setting import Attempt, Setting, for_each_job
from campaign.zygote import Child, Zygote

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
STOPS_IN_A_CHAIN = 5
# One in six is a fresh start of Python, stopped while it imports.
FRESH, IMPORT_SECONDS = 1 / 6, 3.0
# Ctrl-C in the first moments of a fresh start hits Python itself, before a line of ours can catch it: no program can
# help that traceback. It is known by its places: Python's own modules, hooks of site-packages that run at every start
# (_name.py, .pth lines), and the lines of the package that are run before `main` is.
PYTHONS_START = re.compile(
    r"<frozen [\w.]+>|<string>|.*/lib/python3\.\d+/(?!site-packages)\S+\.py|.*/site-packages/_\w+\.py"
    r'|.*/gamma_kg/__(init|main)__\.py", line \d+, in <module>'
)
# How a stopped command may end: by the signal, with the shell's code for it, or in good order because it was done.
ENDS = {
    signal.SIGKILL: (-signal.SIGKILL, 0),
    signal.SIGTERM: (-signal.SIGTERM, 143, 0),
    signal.SIGINT: (-signal.SIGINT, 130, 0),
}


@dataclass(frozen=True)
class Pace:
    """When an undisturbed run wrote its first file, and when it ended; without the imports."""

    first: float
    whole: float

    def moment(self, rng: random.Random) -> float:
        """Any moment; three in four after work has begun."""
        return rng.uniform(0.8 * self.first if rng.random() < 0.75 else 0.0, self.whole)


def killed_anywhere(effort: Effort) -> dict[str, Attempt]:
    return for_each_job("killed", _killed) | {"killed: serve": killed_server}


def _killed(line: Line, setting: Setting, job: Job) -> None:
    effort = setting.effort
    pace, expected, complaint = _undisturbed(job, setting.fresh("calm"), setting.zygote)
    if complaint:
        line.expect(False, complaint)
        return
    rng = random.Random(f"{job.name} {effort.seed}")
    for number in range(10 * effort.kills):
        if line.tried >= effort.kills:
            break
        place = setting.fresh(f"chain{number}")
        stops = min(STOPS_IN_A_CHAIN, effort.kills - line.tried)
        kills, complaint = _chain(job, place, pace, expected, rng, stops, setting.zygote)
        line.tried += kills
        if complaint:
            line.wrong.append(f"chain {number}: {complaint}")
        shutil.rmtree(place)


def _undisturbed(job: Job, calm: Path, zygote: Zygote) -> tuple[Pace, dict[str, bytes], str]:
    before = _entries(calm)
    began = time.monotonic()
    process, first = job.start(calm, zygote), 0.0
    while process.poll() is None:
        if not first and _entries(calm) != before:
            first = time.monotonic() - began
        time.sleep(0.02)
    _, said = process.communicate()
    pace, expected = Pace(first, time.monotonic() - began), job.outcome(calm)
    if process.returncode:
        return pace, expected, f"undisturbed run ended with {process.returncode}: {said[-300:]}"
    return pace, expected, "" if expected else "an undisturbed run leaves no result"


def _entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def _chain(
    job: Job,
    place: Path,
    pace: Pace,
    expected: dict[str, bytes],
    rng: random.Random,
    stops: int,
    zygote: Zygote,
) -> tuple[int, str]:
    """Stop the job some times, let it end, and compare: how often it was stopped, and what is wrong if anything."""
    kills = 0
    for _ in range(stops):
        if job.outcome(place) == expected:
            break  # the last kill came too late: it was done, and some commands refuse to do it twice
        sign, is_fresh = rng.choice(SIGNALS), rng.random() < FRESH
        process = job.start(place, None if is_fresh else zygote)
        was_running = _stop(process, sign, rng.uniform(0, IMPORT_SECONDS) if is_fresh else pace.moment(rng))
        _, said = process.communicate(timeout=120)
        kills += was_running
        is_pythons = is_fresh and sign == signal.SIGINT and in_pythons_start(said)
        if "Traceback" in said and not is_pythons:
            return kills, f"a traceback after {sign.name}: {said[:600]} … {said[-400:]}"
        # Interrupted while it reads the lines of .pth files, Python ends with 1 and not by the signal.
        if process.returncode not in ENDS[sign] and not (is_pythons and process.returncode == 1):
            return kills, f"exit code {process.returncode} after {sign.name}: {said[-300:]}"
        if left := orphans(process.pid):
            return kills, f"left the processes {left}"
        if not was_running:
            break
    # Killed between the last result and the end, it is all there but for tidying up: then it goes on too.
    if job.outcome(place) != expected or (half_files(place) and not job.name.startswith("index")):
        code, said = job.finish(place, zygote)
        if code:
            return kills, f"did not go on: exit {code}, {said[-300:]}"
    return kills, different(job.outcome(place), expected) or _left(place)


def in_pythons_start(said: str) -> bool:
    """Whether a traceback of Ctrl-C lies wholly in Python's own start."""
    places = re.findall(r'File "(.*)', said)
    begins = bool(places) and places[0].startswith("<frozen ")  # not in what Python does when it ends
    return begins and "KeyboardInterrupt" in said and all(PYTHONS_START.match(place) for place in places)


def _stop(process: subprocess.Popen[str] | Child, sign: signal.Signals, seconds: float) -> bool:
    """Send the signal at that moment; False where the process had ended before."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, sign)
        return True
    return False


def _left(place: Path) -> str:
    half = half_files(place)
    return f"left half a file: {half[:3]}" if half else ""
