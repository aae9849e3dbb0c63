"""Nothing lost, nobody let in: tries every kind of fault many times and prints tried / wrong per line.

python benchmarks/faults.py                           the whole campaign, under an hour on two cores
python benchmarks/faults.py --short                   a few of each, as in `make test`
python benchmarks/faults.py --part killed threads     these parts
python benchmarks/faults.py --only "killed: serve"    the lines whose names begin so
python benchmarks/faults.py --go-on                   what is not in the record (--record) yet

Every line is written into the record when it ends, so that a campaign that was stopped goes on. Load needs one core
for half an hour: it runs beside the other parts, at the lowest priority, so that it takes what they leave.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign.hostile import hostile_input
from campaign.killing import commands, killed_anywhere
from campaign.lines import SHORT, WHOLE, Effort, Line, Part
from campaign.load import full_queue
from campaign.native import native_code
from campaign.processes import threads_and_processes
from campaign.readers import damaged_files
from campaign.sharing import full_disk, read_only, two_at_once
from campaign.supply import supply
from campaign.surroundings import surroundings

ROOT = Path(__file__).resolve().parents[1]
PARTS: dict[str, Part] = {
    "killed": killed_anywhere,
    "two at once": two_at_once,
    "full disk": full_disk,
    "read-only": read_only,
    "surroundings": surroundings,
    "hostile": hostile_input,
    "readers": damaged_files,
    "threads": threads_and_processes,
    "native": native_code,
    "supply": supply,
    "load": full_queue,
}
BESIDE = "load"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few of each")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="parts of the campaign")
    parser.add_argument("--only", nargs="+", default=(), help="lines whose names begin so")
    parser.add_argument("--go-on", action="store_true", help="leave out the lines that the record has")
    parser.add_argument("--record", type=Path, default=ROOT / "build" / "faults.jsonl", help="where lines are kept")
    parser.add_argument("--load-minutes", type=float, help="how long the server is under load")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true", help="print what the record has, and try nothing")
    options = parser.parse_args()
    if options.table:
        return print_table(read_record(options.record))
    effort = replace(SHORT if options.short else WHOLE, seed=options.seed, only=tuple(options.only))
    if options.load_minutes is not None:
        effort = replace(effort, load_minutes=options.load_minutes)
    options.record.parent.mkdir(parents=True, exist_ok=True)
    if options.go_on:
        effort = replace(effort, done=frozenset(line.name for line in read_record(options.record)))
    else:
        options.record.unlink(missing_ok=True)
    began, beside = time.monotonic(), None
    if BESIDE in options.part and len(options.part) > 1:
        words = ["nice", "-n", "19", sys.executable, __file__, *_without_parts(), "--go-on", "--part", BESIDE]
        beside = subprocess.Popen(words)
    # One for all parts: importing takes longer than many a line.
    with commands() if len(options.part) > 1 else nullcontext():
        for name in options.part:
            if beside is None or name != BESIDE:
                run_part(PARTS[name], effort, options.record)
    if beside is not None:
        beside.wait()
    found = read_record(options.record)
    wrong = sum(len(line.wrong) for line in found)
    took = f"{(time.monotonic() - began) / 60:.0f} minutes, {_processor_minutes():.0f} of them the processor's"
    print(f"{wrong} wrong in all; {took}, {described()}")
    return 1 if wrong else 0


def _processor_minutes() -> float:
    """Of this process and of all that it started and saw end."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) / 60


def run_part(part: Part, effort: Effort, record: Path) -> None:
    """Tries all lines of a part; each is printed and recorded when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="gamma-faults-"))
    try:
        began = time.monotonic()
        for line in part(folder, effort):
            line.seconds = round(time.monotonic() - began, 1)
            began = time.monotonic()
            print(line, flush=True)
            for complaint in line.wrong[:5]:
                print(f"    {complaint}", flush=True)
            with record.open("a") as file:  # one short write a line: two processes may add theirs
                file.write(json.dumps(asdict(line)) + "\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_record(path: Path) -> list[Line]:
    """The lines tried so far; the last word on each counts."""
    lines = [Line(**json.loads(text)) for text in path.read_text().splitlines()] if path.exists() else []
    return list({line.name: line for line in lines}.values())


def print_table(lines: list[Line]) -> int:
    """The record as a Markdown table."""
    print("| what | tried | wrong |\n|---|---:|---:|")
    for line in lines:
        tried = f"not tried: {line.skipped}" if line.skipped else f"{line.tried:,}"
        print(f"| {line.name}{f' ({line.remark})' if line.remark else ''} | {tried} | {len(line.wrong)} |")
    tried, wrong = sum(line.tried for line in lines), sum(len(line.wrong) for line in lines)
    print(f"| **in all** | **{tried:,}** | **{wrong}** |")
    print(f"\n{described()}; {sum(line.seconds for line in lines) / 60:.0f} minutes")
    return 1 if wrong else 0


def described() -> str:
    from gamma_kg.machine.cpu import cpu_name

    return f"{date.today()}, {cpu_name()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _without_parts() -> list[str]:
    """The words of this command but for --part and its names."""
    words, found, skip = sys.argv[1:], [], False
    for word in words:
        skip = (skip and not word.startswith("--")) or word == "--part"
        if not skip and word != "--go-on":
            found.append(word)
    return found


if __name__ == "__main__" and main():
    sys.exit(1)
