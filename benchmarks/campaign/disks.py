"""A disk that fills up, a folder that can't be written: one clear line, and what was there stays whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign.jobs import Job, different
from campaign.killed_server import Server
from campaign.lines import Effort, Line, NotHereError
from campaign.setting import Attempt, Setting, for_each_job
from campaign.zygote import Zygote

# Room on the disk when the job starts, in kB; it runs out at different moments.
ROOMS = (0, 12, 60, 400)
LARGE = "size=48m"


def full_disk(effort: Effort) -> dict[str, Attempt]:
    return for_each_job("full disk", _full) | {"full disk: serve": _full_under_server}


def _full(line: Line, setting: Setting, job: Job) -> None:
    """Results go to a file system that fills up: one line, exit code 2, nothing half-written; with room it goes on."""
    expected = setting.calm(job)
    for room in ROOMS[:: 3 if setting.effort.is_short else 1]:
        place = setting.fresh(f"room{room}")
        with mounted(bad := setting.folder / f"bad{room}", LARGE):
            _lay_out(job, place, bad)
            (bad / "filler").write_bytes(b"x" * (free(bad) - (room << 10)))
            _run_out(job.at(bad), place, bad, expected, line, setting.zygote)


def _run_out(job: Job, place: Path, bad: Path, expected: dict[str, bytes], line: Line, zygote: Zygote) -> None:
    """One job on a full disk, and again when there is room."""
    code, said = job.finish(place, zygote)
    line.expect(code in (0, 2), f"exit code {code}: {said[-400:]}")
    line.expect("Traceback" not in said and said.count("\n") < 20, f"said {said[-400:]}")
    if code == 0:
        line.expect(not different(job.outcome(bad), expected), "ended well with another result")
        return
    line.expect("No space left" in said, f"the reason is not told: {said[-300:]}")
    found = job.outcome(bad)
    # Logs, records and the best weights so far grow while a job runs; everything else appears when it is whole.
    half = [name for name in found if name in expected and found[name] != expected[name]]
    half = [name for name in half if not name.endswith(("log.jsonl", ".json", "best.safetensors"))]
    line.expect(not half, f"left half of {half[:3]}")
    if job.changes:
        line.expect(_is_whole(bad / job.changes), f"{job.changes} is not what it was")
    (bad / "filler").unlink()
    code, said = job.finish(place, zygote)
    line.expect(not code, f"with room again: exit code {code}: {said[-300:]}")
    wrong = different(job.outcome(bad), expected)
    line.expect(not wrong, f"with room again: {wrong}")


def _lay_out(job: Job, start: Path, place: Path) -> None:
    """What the job changes lies where its results go."""
    if job.changes:
        shutil.copytree(start / job.changes, place / job.changes)


def _is_whole(store: Path) -> bool:
    from gamma_kg.errors import GammaError
    from gamma_kg.graph.store.facts import verify_store

    try:
        verify_store(store)
    except GammaError:
        return False
    return True


def _full_under_server(line: Line, setting: Setting) -> None:
    """A verdict that can't be written is refused in a sentence; the ones before stay, and with room it is taken."""
    place = setting.fresh("serve")
    with mounted(bad := setting.folder / "bad", LARGE):
        server = Server(setting.zygote, place, "--reviews", str(bad / "reviews"))
        facts = [text.split("\t") for text in (place / "facts.tsv").read_text().splitlines()][:3]
        graph = server.call("/v1/graphs")["graphs"][0]["id"]
        bodies = [{"head": h, "relation": r, "tail": t, "verdict": "accepted"} for h, r, t in facts]
        server.call(f"/v1/graphs/{graph}/decisions", bodies[0], "PUT")
        reviews = next((bad / "reviews").glob("*.jsonl"))
        kept = reviews.read_bytes()
        (bad / "filler").write_bytes(b"x" * free(bad))
        try:
            server.call(f"/v1/graphs/{graph}/decisions", bodies[1], "PUT")
            line.expect(False, "a verdict was acknowledged that could not be written")
        except urllib.error.HTTPError as refused:
            said = refused.read().decode()
            line.expect("write" in said and "Traceback" not in said, f"HTTP {refused.code}: {said[:300]}")
        line.expect(reviews.read_bytes() == kept, "the verdicts before were lost")
        (bad / "filler").unlink()
        for body in bodies[1:]:
            server.call(f"/v1/graphs/{graph}/decisions", body, "PUT")
        line.expect(server.end() == 0, server.said[-300:])
        line.expect(reviews.read_bytes().count(b"\n") == 3, "verdicts are missing")


def read_only(effort: Effort) -> dict[str, Attempt]:
    return for_each_job("read-only folder", _read_only)


def _read_only(line: Line, setting: Setting, job: Job) -> None:
    place = setting.fresh("place")
    with mounted(bad := setting.folder / "bad", "size=8m"):
        _lay_out(job, place, bad)
        subprocess.run(["mount", "-o", "remount,ro", str(bad)], check=True)
        code, said = job.at(bad).finish(place, setting.zygote)
        line.expect(code == 2, f"exit code {code}: {said[-300:]}")
        line.expect("Traceback" not in said and said.count("\n") < 10, f"said {said[-400:]}")
        line.expect("read-only" in said.lower(), f"the reason is not told: {said[-300:]}")


def free(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


@contextmanager
def mounted(place: Path, size: str) -> Iterator[None]:
    """A small file system in memory, while inside; only root can have one: else the line is passed over."""
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)], capture_output=True, text=True)
    if done.returncode:
        raise NotHereError(f"no file system can be mounted here ({done.stderr.strip()})")
    try:
        yield
    finally:
        for _ in range(5):
            if not subprocess.run(["umount", str(place)], capture_output=True).returncode:
                break
            time.sleep(0.2)
