"""What a careless user does: odd files and places, streams that are closed, no home, Ctrl-C twice.

Each try ends with exit code 0 or 2, as the tables say, without a traceback; what is read stays as it was.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from campaign.disks import LARGE, free, mounted
from campaign.jobs import GAMMA, JOBS, MODEL, Job, different, environment, half_files, orphans
from campaign.lines import Effort, Line
from campaign.odd_files import TEXT, odd_files
from campaign.odd_places import ASKING, forbidden, odd_places
from campaign.refusing import ends_well, runs_well
from campaign.setting import Attempt, Setting
from campaign.surroundings import FAKETIME
from campaign.zygote import Zygote


def careless(effort: Effort) -> dict[str, Attempt]:
    chosen = {name: _on_few_facts(tried) for name, tried in TRIED.items() if not (effort.is_short and name in STARTING)}
    return {f"careless: {name}": attempt for name, attempt in (chosen | {"Ctrl-C twice": _twice}).items()}


def _on_few_facts(tried: Callable[[Line, Path, Zygote, Effort], None]) -> Attempt:
    """In a folder whose facts are four lines."""

    def attempt(line: Line, setting: Setting) -> None:
        place = setting.fresh("place")
        (place / "facts.tsv").write_text(TEXT)
        (place / "queries.tsv").write_text("a\tr\t?\n")
        tried(line, place, setting.zygote, setting.effort)

    return attempt


def _fresh(line: Line, what: str, script: str, place: Path, wanted: tuple[int, ...], **changes: str | None) -> None:
    """A fresh start of Python by a shell, in an environment with these changes; None takes a variable away."""
    variables = environment(place) | {name: value for name, value in changes.items() if value is not None}
    for name in (name for name, value in changes.items() if value is None):
        variables.pop(name, None)
    gamma = " ".join(GAMMA)
    done = subprocess.run(
        ["bash", "-c", script.replace("GAMMA", gamma)], cwd=place, env=variables, capture_output=True, timeout=900
    )
    ends_well(line, what, done.returncode, done.stderr.decode(errors="replace"), wanted)


def _streams(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Output that nobody reads, that is full, or closed: results are told of or lost with a word, never quietly."""
    asking = " ".join(ASKING)
    _fresh(line, "| head", f"set -o pipefail; GAMMA {asking} | head -1", place, (0, 1, 141))
    _fresh(line, "a full output", f"GAMMA {asking} > /dev/full", place, (2,))
    _fresh(line, "a closed output", f"GAMMA {asking} >&-", place, (2,))
    for name, streams in (("error", "2>&-"), ("streams", "<&- >&- 2>&-")):
        _fresh(line, f"closed {name}", f"GAMMA {asking} --out {name}.jsonl {streams}", place, (0,))
        line.expect((place / f"{name}.jsonl").exists(), f"closed {name}: no result")
    (place / "unicode.tsv").write_text("é→\tr\tü\nü\tr\té→\n")
    for encoding in ("latin-1", "ascii"):
        words = "GAMMA describe unicode.tsv --no-time && GAMMA predict unicode.tsv --head ü --relation r --json"
        _fresh(line, f"output in {encoding}", words, place, (0,), PYTHONIOENCODING=encoding)


def _homes(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """No home, one that is none, no folder for what is temporary, a plain locale, a clock before 1980."""
    words = f"GAMMA complete facts.tsv --top 3 {' '.join(MODEL)} --out %s.jsonl"
    none: dict[str, str | None] = {"XDG_CACHE_HOME": None, "GAMMA_CACHE": None}
    for name, home in (("none", None), ("nowhere", "/nonexistent"), ("a file", "/etc/passwd"), ("read-only", "/proc")):
        _fresh(line, f"a home that is {name}", words % name.replace(" ", ""), place, (0,), HOME=home, **none)
    _fresh(line, "no folder for temporary files", words % "tmp", place, (0, 2), TMPDIR="/nonexistent")
    _fresh(line, "locale C", words % "c", place, (0,), LC_ALL="C", LANG=None, PYTHONUTF8="0")
    _fresh(
        line, "locale C, not mended by Python", words % "c2", place, (0,), LC_ALL="C", PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )  # fmt: skip
    if Path(FAKETIME).exists():
        old = {"LD_PRELOAD": FAKETIME, "FAKETIME": "1975-01-01 00:00:00"}
        _fresh(line, "a clock before 1980", words % "old", place, (0,), **old)
        _fresh(line, "a clock before 1980, index", "GAMMA index facts.tsv --out old.gamma", place, (0,), **old)
    found = {path.read_bytes() for path in place.glob("*.jsonl")}
    line.expect(len(found) == 1, f"{len(found)} different results")


def _full_cache(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """What is kept for later has no room: the answer comes all the same, or one line says why not."""
    words = ["complete", "demo", "--top", "3", "--relations", "borders"]
    with mounted(cache := place / "cache", LARGE):
        (cache / "filler").write_bytes(b"x" * free(cache))
        runs_well(line, "no room for what is kept", [*words, "--out", "full.jsonl"], place, zygote, (0, 2))
        (cache / "filler").unlink()
        runs_well(line, "with room again", [*words, "--out", "room.jsonl"], place, zygote, (0,))
        line.expect(not half_files(cache), f"left half a file: {half_files(cache)}")
        if (place / "full.jsonl").exists() and (place / "room.jsonl").exists():
            same = (place / "full.jsonl").read_bytes() == (place / "room.jsonl").read_bytes()
            line.expect(same, "another result without room")


def _twice(line: Line, setting: Setting) -> None:
    """Ctrl-C, and again at once because it did not end at once: the same as one, and the command goes on."""
    rng = random.Random(f"twice {setting.effort.seed}")
    chosen = [job for job in JOBS if job.name in ("evaluate", "predict --queries", "complete", "index", "pretrain")]
    for job in chosen[:: 2 if setting.effort.is_short else 1]:
        began = time.monotonic()
        expected = setting.calm(job)
        whole = time.monotonic() - began
        for number in range(max(1, setting.effort.kills // 5)):
            here = setting.fresh(f"{job.short_name}{number}")
            _stop_twice(line, job, here, expected, rng, whole, setting.zygote)


def _stop_twice(
    line: Line, job: Job, here: Path, expected: dict[str, bytes], rng: random.Random, whole: float, zygote: Zygote
) -> None:
    process = job.start(here, zygote)
    time.sleep(rng.uniform(0.1, whole))
    for _ in range(2):
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
            time.sleep(rng.choice((0.0, 0.001, 0.02, 0.2)))
    _, said = process.communicate(timeout=300)
    ends_well(line, f"{job.name}, Ctrl-C twice", process.returncode, said, (0, 130, -signal.SIGINT))
    line.expect(not orphans(process.pid), f"{job.name}: left the processes {orphans(process.pid)}")
    if job.outcome(here) != expected:
        code, said = job.finish(here, zygote)
        line.expect(code == 0, f"{job.name} did not go on: exit {code}, {said[-300:]}")
    wrong = different(job.outcome(here), expected)
    line.expect(not wrong, f"{job.name}: {wrong}")
    shutil.rmtree(here)


TRIED: dict[str, Callable[[Line, Path, Zygote, Effort], None]] = {
    "files that are something else": odd_files,
    "results where something is": odd_places,
    "closed and full streams": _streams,
    "homes, locales and old clocks": _homes,
    "no room for what is kept": _full_cache,
    "no permission": forbidden,
}
# Every try of these starts Python anew: not in the short campaign.
STARTING = ("closed and full streams", "homes, locales and old clocks")
