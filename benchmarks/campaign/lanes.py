"""Lines of the campaign that do not wait for each other: lanes are processes that take the next ones from a list.

Starting a command of gamma takes an import, so each lane keeps one process that has imported everything. A line that
fails by an error of the campaign itself is wrong, with the error as the reason, and the lane goes on.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

from campaign.commands import commands
from campaign.lines import Effort, Line, NotHereError
from campaign.setting import Attempt, Part, Setting
from campaign.zygote import Zygote, end_with_parent

# Of a lane beside the others: it gives way to them, but is not kept from starting where the machine is busy.
NICE = 5


@dataclass(frozen=True)
class Unit:
    """Lines of one part that one process tries, one after another."""

    part: Part
    effort: Effort
    names: tuple[str, ...]

    def run(self, record: Path) -> None:
        """Tries all of them; each is printed and recorded when it ends."""
        attempts = self.part.attempts(self.effort)
        with tempfile.TemporaryDirectory(prefix="gamma-faults-", ignore_cleanup_errors=True) as shared:
            for number, name in enumerate(self.names):
                line = tried(name, attempts[name], Path(shared), Path(shared, str(number)), self.effort)
                print("\n    ".join([str(line), *line.wrong[:5]]), flush=True)
                add_to_record(asdict(line), record)


def tried(name: str, attempt: Attempt, shared: Path, folder: Path, effort: Effort) -> Line:
    """One line. An error of the campaign itself makes it wrong."""
    line = Line(name)
    folder.mkdir()
    with commands() as zygote:
        began, used = time.monotonic(), _processor_seconds(zygote)
        try:
            attempt(line, Setting(folder, shared, zygote, effort))
        except NotHereError as reason:
            line.skipped = str(reason)
        except Exception:
            line.expect(False, f"the campaign itself failed: {traceback.format_exc()[-800:]}")
        line.seconds = round(time.monotonic() - began, 1)
        line.processor_seconds = round(_processor_seconds(zygote) - used, 1)
    shutil.rmtree(folder, ignore_errors=True)
    return line


def _processor_seconds(zygote: Zygote) -> float:
    """Of this process, of what it started and saw end, and of commands that were forked for it."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + zygote.used_seconds


def units(parts: Iterable[Part], effort: Effort, names: Iterable[str]) -> Iterator[Unit]:
    """The lines of these names, divided into what one process does at a time."""
    wanted = set(names)
    for part in parts:
        chosen = [name for name in part.attempts(effort) if name in wanted]
        for start in range(0, len(chosen), part.together):
            yield Unit(part, effort, tuple(chosen[start : start + part.together]))


def run_one_after_another(todo: Sequence[Unit], record: Path) -> None:
    with commands():
        for unit in todo:
            unit.run(record)


class Lanes:
    """Processes that do the units; those `beside` have a lane of their own each, at a lower priority."""

    def __init__(self, todo: Sequence[Unit], beside: Sequence[Unit], count: int, record: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._processes: list[SpawnProcess] = []
        self._queues: list[SimpleQueue[Unit | None]] = []  # held until the end: a lane opens its own after it started
        for shared, nice, lanes in ((todo, 0, min(count, len(todo))), *(([unit], NICE, 1) for unit in beside)):
            queue: SimpleQueue[Unit | None] = context.SimpleQueue()
            self._queues.append(queue)
            self._processes += [context.Process(target=_lane, args=(queue, record, nice)) for _ in range(lanes)]
            for process in self._processes[len(self._processes) - lanes :]:
                process.start()
            for unit in (*shared, *[None] * lanes):
                queue.put(unit)

    def wait(self, seconds: float) -> bool:
        """Whether all have ended after at most so many seconds."""
        end = time.monotonic() + seconds
        for process in self._processes:
            process.join(max(0.0, end - time.monotonic()))
        return not any(process.is_alive() for process in self._processes)


def _lane(queue: SimpleQueue[Unit | None], record: Path, nice: int) -> None:
    os.nice(nice)
    end_with_parent()
    with commands():
        while (unit := queue.get()) is not None:
            unit.run(record)


def add_to_record(row: dict[str, Any], record: Path) -> None:
    with record.open("a") as file:  # one short write: lanes add theirs side by side
        file.write(json.dumps(row) + "\n")


def read_record(path: Path) -> tuple[list[Line], list[dict[str, Any]]]:
    """The lines tried so far, of which the last word on each counts; and what is known of each go."""
    rows = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    lines = {row["name"]: Line(**row) for row in rows if "name" in row}
    return list(lines.values()), [row for row in rows if "name" not in row]
