"""What changes under a running command: a file replaced while it is read, a clock that jumps, memory that runs out."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from campaign.jobs import JOBS, Job, calm, environment, prepare
from campaign.killing import commands, different
from campaign.lines import Effort, Line
from campaign.zygote import Zygote

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
# Jumps of the wall clock; time goes on from there.
JUMPS = ("+10y", "-10y", "+2h", "-1d", "+0s")
READERS = {
    "facts.tsv": ("index", "facts.tsv", "--out", "g.gamma"),
    "facts.parquet": ("index", "facts.parquet", "--out", "g.gamma"),
}
WAYS = ("renamed over", "written over")
FACTS = 250_000
LIMITS_MB = (400, 1279, 1281, 1350, 1500, 1700, 2200, 3400)


def surroundings_names(effort: Effort) -> list[str]:
    """In the short campaign one job stands for all where each would start Python anew."""
    jumping = [job.name for job in JOBS if not effort.is_short or job.name == "pretrain"]
    limited = [job.name for job in JOBS if not effort.is_short or job.name == "complete"]
    return [
        *(f"replaced while read: {file}, {way}" for file in READERS for way in WAYS),
        *(f"clock that jumps: {name}" for name in jumping),
        *(f"memory limit: {name}" for name in limited),
    ]


def surroundings(folder: Path, effort: Effort) -> Iterator[Line]:
    start = folder / "start"
    prepare(start)
    with commands() as zygote:
        for file in READERS:
            for way in WAYS:
                line = Line(f"replaced while read: {file}, {way}")
                if effort.wants(line.name):
                    yield _replaced(line, file, way, folder / f"{file}{way}".replace(" ", ""), effort, zygote)
        for job in JOBS:
            line = Line(f"clock that jumps: {job.name}")
            if effort.wants(line.name):
                yield _jumping(line, job, start, folder, effort, zygote)
        for job in JOBS:
            line = Line(f"memory limit: {job.name}")
            if effort.wants(line.name):
                yield _limited(line, job, start, folder / f"limited-{job.short_name}", effort)


def _replaced(line: Line, file: str, way: str, folder: Path, effort: Effort, zygote: Zygote) -> Line:
    """Read while another process replaces it: the result is that of the old file, of the new one, or an error."""
    import polars as pl

    folder.mkdir()
    for name, letter in (("old", "a"), ("new", "b")):
        rows = [f"{letter}{i}\tnext\t{letter}{(i * 7 + 1) % FACTS}\n" for i in range(FACTS)]
        if file.endswith(".tsv"):
            (folder / name).write_text("".join(rows))
        else:
            frame = pl.DataFrame([row.rstrip("\n").split("\t") for row in rows], orient="row", schema=["h", "r", "t"])
            frame.write_parquet(folder / name)
    job = Job("index", READERS[file], ("g.gamma",))
    expected, whole = [], 0.0
    for name in ("old", "new"):
        place = folder / f"calm-{name}"
        place.mkdir()
        shutil.copy(folder / name, place / file)
        began = time.monotonic()
        code, said = job.finish(place, zygote)
        whole = time.monotonic() - began
        if code:
            line.expect(False, f"undisturbed: exit code {code}: {said[-300:]}")
            return line
        expected.append(job.outcome(place))
    rng, refused = random.Random(f"{file} {way} {effort.seed}"), 0
    for number in range(max(2, effort.kills // 2)):
        place = folder / f"try{number}"
        place.mkdir()
        shutil.copy(folder / "old", place / file)
        shutil.copy(folder / "new", place / "other")
        process = job.start(place, zygote)
        time.sleep(rng.uniform(0, 0.4 * whole))
        if way == "renamed over":
            os.replace(place / "other", place / file)
        else:
            (place / file).write_bytes((place / "other").read_bytes())
        _, said = process.communicate()
        refused += process.returncode == 2
        line.expect(
            (process.returncode == 2 and "Traceback" not in said)
            or (process.returncode == 0 and job.outcome(place) in expected),
            f"exit code {process.returncode}, neither the old nor the new: {said[-300:]}",
        )
        shutil.rmtree(place)
    line.remark = f"{refused} refused"
    return line


def _jumping(line: Line, job: Job, start: Path, folder: Path, effort: Effort, zygote: Zygote) -> Line:
    """The wall clock jumps years forth and back while the job runs: the result is the same, in about the same time."""
    if not Path(FAKETIME).exists():
        line.skipped = "libfaketime is not installed (apt-get install libfaketime)"
        return line
    expected = calm(job, start, folder, zygote)
    place, clock = folder / f"jump-{job.short_name}", folder / "clock"
    shutil.copytree(start, place)
    clock.write_text("+0s")
    changes = {
        "LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    process, jumps = job.start(place, None, **changes), 0
    rng = random.Random(f"{job.name} {effort.seed}")
    end = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < end:
        clock.write_text(rng.choice(JUMPS))
        jumps += 1
        time.sleep(rng.uniform(0.05, 0.4))
    process.kill()
    _, said = process.communicate()
    line.expect(process.returncode == 0, f"exit code {process.returncode}: {said[-300:]}")
    wrong = different(job.outcome(place), expected)
    line.expect(not wrong, wrong)
    line.remark = f"{jumps} jumps"
    return line


def _limited(line: Line, job: Job, start: Path, folder: Path, effort: Effort) -> Line:
    """With less and less address space: it works, or one line and exit code 2; with enough it goes on."""
    shutil.copytree(start, folder)
    worked = refused = 0
    for limit in LIMITS_MB[:: 4 if effort.is_short else 1]:
        place = folder.with_name(f"{folder.name}{limit}")
        shutil.copytree(start, place)
        done = subprocess.run(
            [*job.program, *job.arguments], cwd=place, env=environment(place) | {"OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, (limit << 20, limit << 20)),
        )  # fmt: skip
        worked, refused = worked + (done.returncode == 0), refused + (done.returncode == 2)
        complaint = f"{limit} MB: exit code {done.returncode}: {done.stderr[-300:]}"
        line.expect(done.returncode in (0, 2) and "Traceback" not in done.stderr, complaint)
        shutil.rmtree(place)
        if done.returncode == 0:
            break
    line.expect(worked > 0 and refused > 0, f"no limit was both felt and enough: {worked} worked, {refused} refused")
    return line
