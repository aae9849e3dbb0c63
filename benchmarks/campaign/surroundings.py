"""What changes under a running command: a file replaced while it is read, a clock that jumps, memory that runs out."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import time
from pathlib import Path

from campaign.jobs import Job, different, environment
from campaign.lines import Effort, Line, NotHereError
from campaign.setting import Attempt, Setting, for_each_job

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


def surroundings(effort: Effort) -> dict[str, Attempt]:
    """In the short campaign one job stands for all where each would start Python anew."""
    replaced = {f"replaced while read: {file}, {way}": _replaced(file, way) for file in READERS for way in WAYS}
    jumping, limited = for_each_job("clock that jumps", _jumping), for_each_job("memory limit", _limited)
    if effort.is_short:
        jumping = {name: jumping[name] for name in ("clock that jumps: pretrain",)}
        limited = {name: limited[name] for name in ("memory limit: complete",)}
    return replaced | jumping | limited


def _replaced(file: str, way: str) -> Attempt:
    return lambda line, setting: _replace(line, setting, file, way)


def _replace(line: Line, setting: Setting, file: str, way: str) -> None:
    """Read while another process replaces it: the result is that of the old file, of the new one, or an error."""
    import polars as pl

    folder, effort, zygote = setting.folder, setting.effort, setting.zygote
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
            return
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


def _jumping(line: Line, setting: Setting, job: Job) -> None:
    """The wall clock jumps years forth and back while the job runs: the result is the same, in about the same time."""
    if not Path(FAKETIME).exists():
        raise NotHereError("libfaketime is not installed (apt-get install libfaketime)")
    expected, place, clock = setting.calm(job), setting.fresh("jump"), setting.folder / "clock"
    clock.write_text("+0s")
    changes = {
        "LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
    }  # fmt: skip
    process, jumps = job.start(place, None, **changes), 0
    rng = random.Random(f"{job.name} {setting.effort.seed}")
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


def _limited(line: Line, setting: Setting, job: Job) -> None:
    """With less and less address space: it works, or one line and exit code 2; with enough it goes on."""
    worked = refused = 0
    for limit in LIMITS_MB[:: 4 if setting.effort.is_short else 1]:
        place = setting.fresh(f"limit{limit}")
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
