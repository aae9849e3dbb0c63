"""Nothing lost, nobody let in: tries every kind of fault many times and prints tried / wrong per line.

python benchmarks/faults.py                           the whole campaign, under an hour on two cores
python benchmarks/faults.py --short                   a few of each, as in `make test`
python benchmarks/faults.py --part killed threads     these parts
python benchmarks/faults.py --only "killed: serve"    the lines whose names begin so
python benchmarks/faults.py --go-on                   what is not in the record (--record) yet
python benchmarks/faults.py --table kinds             what the record has, a row for each kind of fault

Lines that do not wait for each other run side by side, one more than the machine has cores. The half hour of
load is beside them, at a lower priority. Every line is written into the record
when it ends, so that a campaign that was stopped goes on.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign.careless import careless
from campaign.disks import full_disk, read_only
from campaign.hostile import hostile_input
from campaign.killing import killed_anywhere
from campaign.lanes import Lanes, add_to_record, read_record, run_one_after_another, units
from campaign.lines import SHORT, WHOLE, Effort, Line
from campaign.load import load
from campaign.native import native_code
from campaign.processes import threads_and_processes
from campaign.readers import damaged_files
from campaign.setting import Part
from campaign.sharing import two_at_once
from campaign.supply import supply
from campaign.surroundings import surroundings

ROOT = Path(__file__).resolve().parents[1]
# Long ones first, so that no lane is left alone with one at the end.
PARTS: dict[str, Part] = {
    "native": Part(native_code),
    "supply": Part(supply, together=5),
    "threads": Part(threads_and_processes),
    "killed": Part(killed_anywhere),
    "readers": Part(damaged_files),
    "surroundings": Part(surroundings, together=3),
    "careless": Part(careless),
    "hostile": Part(hostile_input),
    "two at once": Part(two_at_once, together=5),
    "full disk": Part(full_disk, together=5),
    "read-only": Part(read_only, together=9),
    "load": Part(load),
}
BESIDE = "load"
# One more than cores: lines wait a good part of their time, for servers, clocks and processes that end.
LANES = 1 + (os.cpu_count() or 1)
LOOK_SECONDS = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="parts of the campaign")
    parser.add_argument("--only", nargs="+", default=("",), help="lines whose names begin so")
    parser.add_argument("--go-on", action="store_true", help="leave out the lines that the record has")
    parser.add_argument("--record", type=Path, default=ROOT / "build" / "faults.jsonl", help="where lines are kept")
    parser.add_argument("--lanes", type=int, default=LANES, help="how many lines at a time")
    parser.add_argument("--load-minutes", type=float, help="how long the server is under load")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", choices=("lines", "kinds"), help="print what the record has, and try nothing")
    options = parser.parse_args()
    if options.table:
        lines, goes = read_record(options.record)
        return print_table(by_kind(lines) if options.table == "kinds" else lines, goes)
    effort = replace(SHORT if options.short else WHOLE, seed=options.seed)
    if options.load_minutes is not None:
        effort = replace(effort, load_minutes=options.load_minutes)
    options.record.parent.mkdir(parents=True, exist_ok=True)
    names = chosen(options.part, effort, options.only)
    if options.go_on:
        names -= {line.name for line in read_record(options.record)[0]}
    else:
        options.record.unlink(missing_ok=True)
    go = _go(options.part, effort, names, options.lanes, options.record)
    add_to_record(go, options.record)
    lines = read_record(options.record)[0]
    untried = names - {line.name for line in lines}
    wrong = sum(len(line.wrong) for line in lines)
    print(f"{wrong} wrong in all; {told(go)}")
    for name in sorted(untried):
        print(f"{name}: its lane ended before it was tried")
    return 1 if wrong or untried else 0


def chosen(parts: Iterable[str], effort: Effort, beginnings: Iterable[str]) -> set[str]:
    """Names of the lines of these parts that begin so."""
    names = (name for part in parts for name in PARTS[part].attempts(effort))
    return {name for name in names if name.startswith(tuple(beginnings))}


def _go(parts: Iterable[str], effort: Effort, names: set[str], lanes: int, record: Path) -> dict[str, Any]:
    """Tries the lines of these names, and says when and beside what load that was."""
    began, start, loads = datetime.now(UTC), time.monotonic(), [os.getloadavg()[0]]
    if lanes == 1:
        run_one_after_another(list(units([PARTS[part] for part in parts], effort, names)), record)
    else:
        todo = list(units([PARTS[part] for part in parts if part != BESIDE], effort, names))
        beside = list(units([PARTS[part] for part in parts if part == BESIDE], effort, names))
        running = Lanes(todo, beside, lanes, record)
        while not running.wait(LOOK_SECONDS):
            loads.append(os.getloadavg()[0])
    return {
        "began": began.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "minutes": round((time.monotonic() - start) / 60, 1),
        "processor_minutes": round(_processor_minutes(), 1),
        "load": [round(value, 1) for value in (min(loads), sum(loads) / len(loads), max(loads))],
        "lanes": lanes,
        "lines": len(names),
        "commit": _commit(),
        "machine": described(),
    }


def told(go: dict[str, Any]) -> str:
    least, mean, most = go["load"]
    return (
        f"{go['lines']} lines in one go from {go['began']} to {go['ended']}: {go['minutes']} minutes in {go['lanes']} "
        f"lanes, {go['processor_minutes']} minutes of the processor, load of the machine {least} to {most}, {mean} on "
        f"average; {go['machine']}, commit {go['commit']}"
    )


def _processor_minutes() -> float:
    """Of this process and of all that it started and saw end."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) / 60


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def by_kind(lines: list[Line]) -> list[Line]:
    """Lines of one kind as one: of one name before the colon, or of one part."""
    parts = {name: part for part in PARTS for name in PARTS[part].attempts(WHOLE)}
    kinds: dict[str, list[Line]] = {}
    for line in lines:
        kind, colon, _ = line.name.partition(":")
        kinds.setdefault(kind if colon else parts.get(line.name, line.name), []).append(line)
    return [
        Line(
            kind, sum(line.tried for line in of), [text for line in of for text in line.wrong],
            ", ".join(line.skipped for line in of if line.skipped), sum(line.seconds for line in of),
            sum(line.processor_seconds for line in of), f"{len(of)} lines" if len(of) > 1 else of[0].remark,
        )
        for kind, of in kinds.items()
    ]  # fmt: skip


def print_table(lines: list[Line], goes: list[dict[str, Any]]) -> int:
    """The record as a Markdown table."""
    print("| what | tried | wrong | s of the processor |\n|---|---:|---:|---:|")
    for line in sorted(lines, key=lambda line: line.name.lower()):
        tried = f"{line.tried:,}{f', not tried: {line.skipped}' if line.skipped else ''}"
        name = f"{line.name}{f' ({line.remark})' if line.remark else ''}"
        print(f"| {name} | {tried} | {len(line.wrong)} | {line.processor_seconds:,.0f} |")
    tried, wrong = sum(line.tried for line in lines), sum(len(line.wrong) for line in lines)
    used = sum(line.processor_seconds for line in lines)
    print(f"| **in all** | **{tried:,}** | **{wrong}** | **{used:,.0f}** |\n")
    for go in goes:
        print(told(go))
    return 1 if wrong else 0


def described() -> str:
    from gamma_kg.machine.cpu import cpu_name

    return f"{date.today()}, {cpu_name()}, {os.cpu_count()} cores, Python {platform.python_version()}"


if __name__ == "__main__" and main():
    sys.exit(1)
