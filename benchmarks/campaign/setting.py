"""Where a line of the campaign is tried, and the table of what tries each."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from campaign.jobs import JOBS, Job, prepare
from campaign.lines import Effort, Line
from campaign.zygote import Zygote


@dataclass(frozen=True)
class Setting:
    """An empty folder for one line, one that the lines of a unit share, and what starts commands."""

    folder: Path
    shared: Path
    zygote: Zygote
    effort: Effort

    def fresh(self, name: str) -> Path:
        """A folder of this name that commands can start from: sets, facts, queries and a small model."""
        start = self.shared / "start"
        if not start.exists():
            prepare(start)
        return Path(shutil.copytree(start, self.folder / name))

    def calm(self, job: Job) -> dict[str, bytes]:
        """What one undisturbed run leaves."""
        place = self.fresh(f"calm-{job.short_name}")
        code, said = job.finish(place, self.zygote)
        if code:
            raise RuntimeError(f"{job.name} ended with {code}: {said[-400:]}")
        return job.outcome(place)


Attempt = Callable[[Line, Setting], None]


@dataclass(frozen=True)
class Part:
    """Lines by name, each with what tries it. Names are known before, so that one that never came is noticed."""

    attempts: Callable[[Effort], dict[str, Attempt]]
    together: int = 1  # how many lines share what they need: they are tried by one process, one after another


def for_each_job(what: str, attempt: Callable[[Line, Setting, Job], None]) -> dict[str, Attempt]:
    """A line for each of the long commands."""

    def of(job: Job) -> Attempt:
        return lambda line, setting: attempt(line, setting, job)

    return {f"{what}: {job.name}": of(job) for job in JOBS}
