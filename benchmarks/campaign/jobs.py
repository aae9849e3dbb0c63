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

from campaign.zygote import Child, Zygote

GAMMA = (sys.executable, "-m", "gamma_kg")
FETCH = (sys.executable, str(Path(__file__).with_name("fetch_program.py")))
# What may lie beside a result while nobody writes: locks are files, and stay.
MAY_STAY = (".lock",)


@dataclass(frozen=True)
class Job:
    """A command that is run in a folder of its own. `again` is what one adds to go on after it was stopped."""

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]  # files or folders that must come out the same, byte for byte
    again: tuple[str, ...] = ()
    begun: str = ""  # what is there once the command can be gone on with; a run stopped before starts anew
    program: tuple[str, ...] = GAMMA
    place: str = "--out"  # the option that says where results go
    changes: str = ""  # what lies there before and is changed

    @property
    def short_name(self) -> str:
        return self.name.replace(" ", "").replace("-", "")

    def start(self, folder: Path, zygote: Zygote | None = None, **changes: str) -> subprocess.Popen[str] | Child:
        """The command as a process: forked where there is a zygote, else started the usual way."""
        go_on = bool(self.again) and (folder / self.begun).exists()
        words = [*self.arguments, *(self.again if go_on else ())]
        if zygote is not None:
            return zygote.start(words, folder, environment(folder) | changes)
        words = [*self.program, *words]
        return subprocess.Popen(
            words, cwd=folder, env=environment(folder) | changes, text=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def finish(self, folder: Path, zygote: Zygote | None = None, **changes: str) -> tuple[int, str]:
        """Run to the end; exit code and what it said."""
        process = self.start(folder, zygote, **changes)
        _, said = process.communicate(timeout=900)
        assert process.returncode is not None
        return process.returncode, said

    def at(self, place: Path) -> Job:
        """The same with its results in another folder; those are still named as before, from there."""
        words = list(self.arguments)
        at = words.index(self.place) + 1
        words[at] = str(place / words[at])
        begun = str(place / self.begun) if self.begun else ""
        return Job(self.name, tuple(words), self.results, self.again, begun, self.program, self.place, self.changes)

    def outcome(self, folder: Path) -> dict[str, bytes]:
        """Every result file with its bytes; of the log of a run what happened, and how often."""
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


def orphans(session: int) -> list[int]:
    """Processes that a job started and left behind: those of its session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[3]) == session:
            found.append(int(stat.parent.name))
    return found


def half_files(folder: Path) -> list[str]:
    """What nobody but the process that wrote it would know what to do with."""
    endings = ("*.tmp", "*.part", "*.progress")
    return sorted(str(path.relative_to(folder)) for ending in endings for path in folder.rglob(ending))


def _comparable(file: Path) -> bytes:
    """The bytes of a result but for clocks and memory: how long something took may differ."""
    content = file.read_bytes()
    if file.suffix == ".safetensors":  # the header tells when and how fast it was made; what counts are the weights
        return content[8 + int.from_bytes(content[:8], "little") :]
    if file.name == "log.jsonl":
        records = [json.loads(line) for line in content.splitlines()]
        return json.dumps([[r["step"], r.get("loss"), r.get("mrr")] for r in records if r["kind"] != "event"]).encode()
    if file.suffix != ".json":
        return content
    return json.dumps(_without_clocks(json.loads(content))).encode()


def _without_clocks(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_clocks(value) for key, value in found.items() if key not in CLOCKS}
    return [_without_clocks(value) for value in found] if isinstance(found, list) else found


# The checksum of a result is over its clocks too.
CLOCKS = ("seconds", "time", "started", "finished", "queries_per_second", "peak_memory_mb", "checksum")


def different(found: dict[str, bytes], expected: dict[str, bytes]) -> str:
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    return f"differs from an undisturbed run in {', '.join(names[:4])}" if names else ""


def prepare(folder: Path) -> None:
    """A folder with tiny benchmark sets, a graph of facts, a denser one, a file of queries and a small model."""
    import numpy as np

    rng = np.random.default_rng(5)
    for slug, sizes in TINY_SETS.items():
        (folder / "datasets" / slug).mkdir(parents=True)
        parent = {child: int(rng.integers(child)) for child in range(1, 60)}
        facts = [(p, "parent of", c) for c, p in parent.items()] + [(c, "child of", p) for c, p in parent.items()]
        lines = [f"p{facts[i][0]}\t{facts[i][1]}\tp{facts[i][2]}\n" for i in rng.permutation(len(facts))]
        for name, size in sizes:
            (folder / "datasets" / slug / name).write_text("".join(lines[:size]))
            lines = lines[size:]
    facts_text = (folder / "datasets" / "fb15k237" / "train.txt").read_text()
    (folder / "facts.tsv").write_text(facts_text)
    ends = rng.integers(0, 40, (400, 2))
    (folder / "dense.tsv").write_text("".join(f"d{h}\tr{(h + t) % 3}\td{t}\n" for h, t in ends if h != t))
    heads = sorted({line.split("\t")[0] for line in facts_text.splitlines()})
    (folder / "queries.tsv").write_text("".join(f"{head}\tparent of\t?\n" for head in heads * 6))
    (folder / "run.toml").write_text(RUN)
    (folder / "plan.toml").write_text(PLAN)
    _save_small_model(folder / "small.safetensors")
    _save_half(facts_text.splitlines(), folder / "grown.gamma")


def _save_half(lines: list[str], store: Path) -> None:
    """A store with half of the facts, to add the others to."""
    from gamma_kg.graph.graph import KnowledgeGraph

    rows = [line.split("\t") for line in lines[: len(lines) // 2]]
    KnowledgeGraph.from_triples([(head, relation, tail) for head, relation, tail in rows]).save(store)


def _save_small_model(path: Path) -> None:
    """Weights of no use: what is tried here are files and processes, and small ones leave more time for that."""
    from gamma_kg.nn.config import GammaConfig
    from gamma_kg.predicting.gamma import Gamma

    Gamma.from_config(GammaConfig(dim=16, num_layers=2), seed=3).save(path)


TINY_SETS: dict[str, Sequence[tuple[str, int]]] = {
    "fb15k237": (("test.txt", 6), ("valid.txt", 6), ("train.txt", 999)),
    "mine": (("test.txt", 12), ("valid.txt", 6), ("train.txt", 999)),
}
MODEL = ("--model", "small.safetensors")
RUN = """
model = "ultra"
model_options = { dim = 16, num_layers = 2 }
graphs = ["facts.tsv"]
steps = 24
checkpoint_steps = 4
log_steps = 4
keep = 1
seed = 3
[[phases]]
sampler = "full"
batch_size = 4
negatives = 8
"""
PLAN = """
title = "Two variants"
seeds = [3]
datasets = ["datasets/mine"]
split = "valid"
[rows]
"one" = { model = "ultra", model_options = { dim = 8, num_layers = 1 } }
"two" = { model = "ultra", model_options = { dim = 8, num_layers = 2 } }
[train]
graphs = ["facts.tsv"]
steps = 8
checkpoint_steps = 4
log_steps = 4
[[train.phases]]
sampler = "full"
batch_size = 4
negatives = 8
"""
SMALLER = ("--set", "steps=16", "--set", "checkpoint_steps=4", "--set", "validate_steps=8", "--set", "keep=1",
           "--set", "phases.0.batch_size=4")  # fmt: skip


def _trained(folder: str, *files: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in ("checkpoints", "log.jsonl", *files))


JOBS: tuple[Job, ...] = (
    Job("evaluate", ("evaluate", "datasets/mine", "--out", "results", *MODEL), ("results",)),
    Job(
        "predict --queries", ("predict", "facts.tsv", "--queries", "queries.tsv", "--out", "a.jsonl", *MODEL),
        ("a.jsonl",),
    ),
    Job("complete", ("complete", "facts.tsv", "--out", "c.jsonl", "--top", "40", *MODEL), ("c.jsonl",)),
    Job("index", ("index", "facts.tsv", "--out", "g.gamma"), ("g.gamma",)),
    Job(
        "index --append", ("index", "facts.tsv", "--out", "grown.gamma", "--append"), ("grown.gamma",),
        changes="grown.gamma",
    ),
    Job("pretrain", ("pretrain", "run.toml", "--out", "run"), _trained("run"), ("--resume",), "run/state.pt"),
    Job(
        "finetune", ("finetune", "facts.tsv", "--out", "tuned", *SMALLER, *MODEL),
        _trained("tuned", "best.safetensors", "finetuned.safetensors"), ("--resume",), "tuned/state.pt",
    ),
    Job(
        "adapt", ("adapt", "dense.tsv", "--out", "own", "--steps", "12", *MODEL),
        _trained("own", "best.safetensors", "adapted.safetensors", "adapted.json"), ("--resume",), "own/state.pt",
    ),
    Job(
        "ablate", ("ablate", "plan.toml", "--out", "ablated"),
        tuple(f"ablated/table.{ending}" for ending in ("md", "csv", "tex", "json")),
    ),
    Job(
        "datasets fetch", ("datasets", "fetch", "yago310", "--data-dir", "fetched"), ("fetched",), program=FETCH,
        place="--data-dir",
    ),
)  # fmt: skip
