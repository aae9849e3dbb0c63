"""Two at once on the same place: one of them is told so, and the result is that of one alone."""

from __future__ import annotations

import random
import shutil
import time

from campaign.jobs import Job, different
from campaign.killed_server import Server
from campaign.lines import Effort, Line
from campaign.setting import Attempt, Setting, for_each_job

# Why the second is refused: the first is at work, or, on a fast machine, has just finished and it is not done twice.
REASONS = ("another process", "a store is there already")


def two_at_once(effort: Effort) -> dict[str, Attempt]:
    return for_each_job("two at once", _two_at_once) | {"two at once: serve": _two_servers}


def _two_at_once(line: Line, setting: Setting, job: Job) -> None:
    """Started at the same time on the same place: at most one is refused, and the result is that of one alone."""
    rng, expected, told = random.Random(setting.effort.seed), setting.calm(job), 0
    for number in range(setting.effort.races):
        place = setting.fresh(f"race{number}")
        both = [job.start(place, setting.zygote)]
        time.sleep(rng.uniform(0, 0.3))
        both.append(job.start(place, setting.zygote))
        ends = [(process.communicate(timeout=600)[1], process.returncode) for process in both]
        told += sum(1 for _, code in ends if code)
        complaint = _complaint(ends) or different(job.outcome(place), expected)
        line.expect(not complaint, complaint)
        shutil.rmtree(place)
    line.remark = f"{told} refused"


def _complaint(ends: list[tuple[str, int | None]]) -> str:
    """What is wrong with how the two ended, by what each said and its exit code."""
    refused = [said for said, code in ends if code]
    if any("Traceback" in said for said, _ in ends):
        return f"a traceback: {[said[-300:] for said, _ in ends if 'Traceback' in said]}"
    if len(refused) > 1:
        return f"both were refused: {refused}"
    if any(code not in (0, 2) for _, code in ends):
        return f"exit codes {[code for _, code in ends]}"
    if any(not any(reason in said for reason in REASONS) for said in refused):
        return f"refused without the reason: {refused}"
    return ""


def _two_servers(line: Line, setting: Setting) -> None:
    place = setting.fresh("serve")
    for _ in range(setting.effort.races):
        first, second = (Server(setting.zygote, place, "--reviews", "reviews") for _ in range(2))
        code = second.process.wait(120) if not second.address else None
        line.expect(code == 2 and "another process" in second.said, f"the second: {code}, {second.said[-300:]}")
        second.end()
        line.expect(first.end() == 0, f"the first: {first.said[-300:]}")
