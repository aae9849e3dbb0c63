"""The long commands of gamma, small: how each is started, how it is taken up again, and what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GAMMA = (sys.executable, "-m", "gamma_kg")
# What may lie beside a result while nobody writes: locks are files, and stay.
MAY_STAY = (".lock",)


@dataclass(frozen=True)
class Job:
    """A command that is run in a folder of its own. `again` is what one adds to go on after it was stopped."""

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]  # files or folders that must come out the same, byte for byte
    again: tuple[str, ...] = ()

    def start(self, folder: Path, go_on: bool = False) -> subprocess.Popen[str]:
        words = [*GAMMA, *self.arguments, *(self.again if go_on else ())]
        return subprocess.Popen(
            words, cwd=folder, env=environment(folder), text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip

    def finish(self, folder: Path, go_on: bool = False) -> tuple[int, str]:
        """Run to the end; exit code and what it said."""
        process = self.start(folder, go_on)
        _, said = process.communicate(timeout=600)
        return process.returncode, said

    def outcome(self, folder: Path) -> dict[str, bytes]:
        """Every result file with its bytes."""
        found: dict[str, bytes] = {}
        for name in self.results:
            path = folder / name
            files = sorted(path.rglob("*")) if path.is_dir() else [path] if path.exists() else []
            for file in files:
                if file.is_file() and not file.name.endswith(MAY_STAY):
                    found[str(file.relative_to(folder))] = _comparable(file)
        return found


def environment(folder: Path) -> dict[str, str]:
    """Threads are one, so that bits are the same; nothing of the user's own folders is read or written."""
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "GAMMA_DATA": str(folder / "datasets"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "GAMMA_CACHE": str(folder / "cache"),
    }


def _comparable(file: Path) -> bytes:
    """The bytes of a result but for clocks and memory: how long something took may differ."""
    content = file.read_bytes()
    if file.suffix == ".safetensors":  # the header tells when and how fast it was made; what counts are the weights
        return content[8 + int.from_bytes(content[:8], "little") :]
    if file.suffix != ".json":
        return content
    return json.dumps(_without_clocks(json.loads(content))).encode()


def _without_clocks(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_clocks(value) for key, value in found.items() if key not in CLOCKS}
    return [_without_clocks(value) for value in found] if isinstance(found, list) else found


CLOCKS = ("seconds", "time", "started", "finished", "queries_per_second", "peak_memory_mb")


def prepare(folder: Path) -> None:
    """A folder with tiny benchmark sets, a graph of facts and a file of queries."""
    import numpy as np

    rng = np.random.default_rng(5)
    for slug, files in TINY_SETS.items():
        (folder / "datasets" / slug).mkdir(parents=True)
        parent = {child: int(rng.integers(child)) for child in range(1, 60)}
        facts = [(p, "parent of", c) for c, p in parent.items()] + [(c, "child of", p) for c, p in parent.items()]
        lines = [f"p{facts[i][0]}\t{facts[i][1]}\tp{facts[i][2]}\n" for i in rng.permutation(len(facts))]
        for name, size in files:
            (folder / "datasets" / slug / name).write_text("".join(lines[:size]))
            lines = lines[size:]
    facts_text = (folder / "datasets" / "fb15k237" / "train.txt").read_text()
    (folder / "facts.tsv").write_text(facts_text)
    heads = sorted({line.split("\t")[0] for line in facts_text.splitlines()})
    (folder / "queries.tsv").write_text("".join(f"{head}\tparent of\t?\n" for head in heads * 6))
    (folder / "run.toml").write_text(RUN)


TINY_SETS: dict[str, Sequence[tuple[str, int]]] = {
    "fb15k237": (("test.txt", 6), ("valid.txt", 6), ("train.txt", 999)),
    "mine": (("test.txt", 12), ("valid.txt", 6), ("train.txt", 999)),
}
RUN = """
model = "ultra"
graphs = ["facts.tsv"]
steps = 40
checkpoint_steps = 5
log_steps = 5
seed = 3
[[phases]]
sampler = "full"
batch_size = 4
negatives = 8
"""

JOBS: tuple[Job, ...] = (
    Job("evaluate", ("evaluate", "datasets/mine", "--out", "results"), ("results",)),
    Job("predict --queries", ("predict", "facts.tsv", "--queries", "queries.tsv", "--out", "a.jsonl"), ("a.jsonl",)),
    Job("complete", ("complete", "facts.tsv", "--out", "c.jsonl", "--top", "40"), ("c.jsonl",)),
    Job("index", ("index", "facts.tsv", "--out", "g.gamma"), ("g.gamma",)),
    Job("pretrain", ("pretrain", "run.toml", "--out", "run"), ("run/checkpoints",), ("--resume",)),
)
