"""Two at once on the same place: one of them is told so, and the result is that of one alone."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from campaign.jobs import JOBS, calm, prepare
from campaign.killed_server import Server
from campaign.killing import commands, different
from campaign.lines import Effort, Line

# Why the second is refused: the first is at work, or, on a fast machine, has just finished and it is not done twice.
REASONS = ("another process", "a store is there already")


def shared_names(effort: Effort) -> list[str]:
    return [*(f"two at once: {job.name}" for job in JOBS), "two at once: serve"]


def two_at_once(folder: Path, effort: Effort) -> Iterator[Line]:
    """Started at the same time on the same place: at most one is refused, and the result is that of one alone."""
    start, rng = folder / "start", random.Random(effort.seed)
    prepare(start)
    with commands() as zygote:
        for job in JOBS:
            line = Line(f"two at once: {job.name}")
            if not effort.wants(line.name):
                continue
            expected, told = calm(job, start, folder, zygote), 0
            for number in range(effort.races):
                place = folder / f"race{number}-{job.short_name}"
                shutil.copytree(start, place)
                both = [job.start(place, zygote)]
                time.sleep(rng.uniform(0, 0.3))
                both.append(job.start(place, zygote))
                ends = [(process.communicate(timeout=600)[1], process.returncode) for process in both]
                refused = [said for said, code in ends if code]
                complaint = ""
                if any("Traceback" in said for said, _ in ends):
                    complaint = f"a traceback: {[said[-300:] for said, _ in ends if 'Traceback' in said]}"
                elif len(refused) > 1:
                    complaint = f"both were refused: {refused}"
                elif any(code not in (0, 2) for _, code in ends):
                    complaint = f"exit codes {[code for _, code in ends]}"
                elif any(not any(reason in said for reason in REASONS) for said in refused):
                    complaint = f"refused without the reason: {refused}"
                else:
                    complaint = different(job.outcome(place), expected)
                told += len(refused)
                line.expect(not complaint, complaint)
                shutil.rmtree(place)
            line.remark = f"{told} refused"
            yield line
        line = Line("two at once: serve")
        if effort.wants(line.name):
            for _ in range(effort.races):
                first = Server(zygote, start, "--reviews", "reviews")
                second = Server(zygote, start, "--reviews", "reviews")
                code = second.process.wait(120) if not second.address else None
                line.expect(code == 2 and "another process" in second.said, f"the second: {code}, {second.said[-300:]}")
                second.end()
                line.expect(first.end() == 0, f"the first: {first.said[-300:]}")
            yield line
