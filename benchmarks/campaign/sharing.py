"""Two at once, a full disk, a folder that can't be written: one clear line, and what was there stays whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.jobs import JOBS, Job, prepare
from campaign.lines import Effort, Line


def two_at_once(folder: Path, effort: Effort) -> Iterator[Line]:
    """Started at the same time on the same place: at most one is refused, and the result is that of one alone."""
    start = folder / "start"
    prepare(start)
    for job in JOBS:
        line = Line(f"two at once: {job.name}")
        calm = folder / f"calm-{job.name.replace(' ', '')}"
        shutil.copytree(start, calm)
        job.finish(calm)
        expected = job.outcome(calm)
        for number in range(effort.races):
            place = folder / f"race{number}-{job.name.replace(' ', '')}"
            shutil.copytree(start, place)
            both = [job.start(place), job.start(place)]
            ends = [(process.communicate(timeout=600)[1], process.returncode) for process in both]
            refused = [said for said, code in ends if code]
            complaint = ""
            if any("Traceback" in said for said, _ in ends):
                complaint = f"a traceback: {[said[-300:] for said, _ in ends if 'Traceback' in said]}"
            elif len(refused) > 1:
                complaint = f"both were refused: {refused}"
            elif any(code not in (0, 2) for _, code in ends):
                complaint = f"exit codes {[code for _, code in ends]}"
            elif job.outcome(place) != expected:
                complaint = "the result is not that of one run alone"
            line.expect(not complaint, complaint)
            shutil.rmtree(place)
        yield line


def full_disk(folder: Path, effort: Effort) -> Iterator[Line]:
    """Results go to a file system of 64 kB that is full: one line, exit code 2, and nothing half-written."""
    yield from _on_bad_disks(folder, "full disk", ["-o", "size=64k"], fill=True)


def read_only(folder: Path, effort: Effort) -> Iterator[Line]:
    yield from _on_bad_disks(folder, "read-only folder", ["-o", "size=64k,ro"], fill=False)


def _on_bad_disks(folder: Path, name: str, options: list[str], fill: bool) -> Iterator[Line]:
    start = folder / "start"
    prepare(start)
    for job in JOBS:
        line = Line(f"{name}: {job.name}")
        place, bad = folder / job.name.replace(" ", ""), folder / f"bad-{job.name.replace(' ', '')}"
        shutil.copytree(start, place)
        bad.mkdir()
        try:
            with mounted(bad, options):
                if fill:
                    (bad / "filler").write_bytes(b"x" * _free(bad))
                moved = Job(job.name, _onto(job, bad), job.results, job.again)
                code, said = moved.finish(place)
                left = sorted(
                    str(path.relative_to(bad))
                    for path in bad.rglob("*")
                    # Hidden, or a store's room for building, is what a next run goes on with.
                    if path.is_file() and path.name != "filler" and not path.relative_to(bad).parts[0].startswith(".")
                    if "building" not in path.parts
                )
                left = [name for name in left if not name.endswith(".lock")]
                line.expect(code == 2, f"exit code {code}: {said[-300:]}")
                line.expect("Traceback" not in said and len(said.strip().splitlines()) < 6, f"said {said[-400:]}")
                line.expect(not left or not fill, f"left {left}")
        except PermissionError as refused:
            line.skipped = str(refused)
        yield line


def _onto(job: Job, bad: Path) -> tuple[str, ...]:
    """The same command with its result on the bad disk."""
    words = list(job.arguments)
    at = words.index("--out") + 1
    words[at] = str(bad / words[at])
    return tuple(words)


def _free(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


@contextmanager
def mounted(place: Path, options: list[str]) -> Iterator[None]:
    """A small file system in memory, while inside; only root can have one."""
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(place)], capture_output=True, text=True)
    if done.returncode:
        raise PermissionError(f"no file system can be mounted here ({done.stderr.strip()})")
    try:
        yield
    finally:
        for _ in range(5):
            if not subprocess.run(["umount", str(place)], capture_output=True).returncode:
                break
            time.sleep(0.2)
