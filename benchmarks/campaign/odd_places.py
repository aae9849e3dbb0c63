"""Results where an input is, a folder, a pipe, or what may not be touched: what was there stays what it was."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from campaign.jobs import MODEL, environment
from campaign.lines import Effort, Line, NotHereError
from campaign.odd_files import PIPES, TEXT, lay_out_odd_files
from campaign.refusing import ends_well, runs_well
from campaign.zygote import Zygote

RESULTS = (
    "facts.tsv", "queries.tsv", "link.tsv", "hard.tsv", "folder.tsv", "pipe.jsonl", "/dev/full", "", ".", "..",
    "x" * 300 + ".jsonl", "new/deep/x.jsonl", "facts.tsv/x.jsonl", "/proc/x.jsonl", "loop.tsv", "a.xyz",
    "odd\udcff.tsv", "small.safetensors", "run.toml",
)  # fmt: skip
FOLDERS = ("facts.tsv", "", ".", "x" * 300, "/dev/full", "loop.tsv", "facts.tsv/x")
ASKING = ("predict", "facts.tsv", "--queries", "queries.tsv", *MODEL)
# Commands that write, and where to.
WRITERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "predict": (ASKING, RESULTS),
    "complete": (("complete", "facts.tsv", "--top", "3", *MODEL), RESULTS[:9]),
    "explain": (
        ("explain", "facts.tsv", "--head", "a", "--relation", "r", "--tail", "b", *MODEL),
        ("facts.tsv", "folder.svg", "pipe.svg", "new/deep/x.svg"),
    ),
    "index": (("index", "facts.tsv"), FOLDERS),
    "evaluate": (("evaluate", "datasets/mine", "--limit", "2", *MODEL), FOLDERS),
    "pretrain": (("pretrain", "run.toml", "--set", "steps=2"), FOLDERS),
    "average": (("average", "small.safetensors", "small.safetensors"), ("small.safetensors", "folder.tsv", "")),
}


def odd_places(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Results where an input is, a folder, a pipe, nothing at all: what was there is there, and is what it was."""
    lay_out_odd_files(place)
    pristine = place.with_name(f"{place.name}-pristine")
    kept = ("facts.tsv", "queries.tsv", "small.safetensors", "run.toml")
    before = {name: (place / name).read_bytes() for name in kept}
    shutil.copytree(place, pristine, symlinks=True, copy_function=_copied)
    for command, (words, results) in WRITERS.items():
        for result in results[:: 4 if effort.is_short else 1]:
            here = place.with_name(f"{place.name}-{command}")
            shutil.copytree(pristine, here, symlinks=True, copy_function=_copied)
            (here / "hard.tsv").unlink(missing_ok=True)
            os.link(here / "facts.tsv", here / "hard.tsv")
            what = f"{command} --out {result[:40]!r}"
            runs_well(line, what, [*words, "--out", result], here, zygote, (0, 2))
            changed = [name for name in kept if name in words and (here / name).read_bytes() != before[name]]
            line.expect(not changed, f"{what}: wrote over {changed}")
            are_pipes = all(stat.S_ISFIFO((here / name).stat().st_mode) for name in PIPES)
            line.expect(are_pipes, f"{what}: took the place of a pipe")
            shutil.rmtree(here)
    shutil.rmtree(pristine)


def _copied(source: str, target: str) -> None:
    if stat.S_ISFIFO(os.lstat(source).st_mode):
        os.mkfifo(target)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def forbidden(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Files that may not be read, folders that may not be written, for a user who is not root."""
    if os.getuid() != 0:
        raise NotHereError("only root can become another user")
    (place / "secret.tsv").write_text(TEXT)
    (place / "secret.tsv").chmod(0)
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "facts.tsv").write_text(TEXT)
    for path in (*place.parents, place):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o055)
    cases = {
        "a file": ["index", "secret.tsv", "--out", "/tmp/never.gamma"],
        "a file in a folder": ["index", "closed/facts.tsv", "--out", "/tmp/never.gamma"],
        "a folder": ["index", "closed", "--out", "/tmp/never.gamma"],
        "a place for a store": ["index", "facts.tsv", "--out", "g.gamma"],
        "a place for results": [*ASKING, "--out", "a.jsonl"],
        "a place in a closed folder": [*ASKING, "--out", "closed/a.jsonl"],
        "a place for a run": ["pretrain", "run.toml", "--out", "run"],
        "a place for an evaluation": [*WRITERS["evaluate"][0], "--out", "results"],
    }
    for name, words in cases.items():
        process = zygote.start(words, place, environment(place) | {"GAMMA_FAULTS_USER": "65534"})
        _, said = process.communicate(timeout=120)
        ends_well(line, f"no right to {name}", process.returncode, said, (2,))
        line.expect("ermission" in said, f"no right to {name}: the reason is not told: {said[-300:]!r}")
