"""One model used by many threads; a process that forks; a run of several processes of which one is killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.jobs import environment, orphans
from campaign.lines import Effort, Line, NotHereError
from campaign.setting import Attempt, Setting

if TYPE_CHECKING:
    from gamma_kg import Gamma, KnowledgeGraph

MINUTE = 60.0
TORCHRUN = "torchrun with a process killed"


def threads_and_processes(effort: Effort) -> dict[str, Attempt]:
    forks = {f"fork after {name}": _forked(program) for name, program in FORKS.items()}
    return {TORCHRUN: _one_of_two, f"one model, {effort.threads} threads, two graphs": _many_threads} | forks


def _many_threads(line: Line, setting: Setting) -> None:
    """Every thread asks questions on both graphs; the answers are those of one thread alone, bit for bit."""
    import torch

    from gamma_kg import Gamma
    from gamma_kg.demo import demo_graph

    gamma, graphs = Gamma.from_pretrained(), [demo_graph(), _another()]
    questions = [(g, e % kg.num_entities, e % kg.num_types) for e in range(60) for g, kg in enumerate(graphs)]

    def ask(model: Gamma, question: tuple[int, int, int]) -> torch.Tensor:
        g, entity, relation = question
        return model.scores(graphs[g], [entity], [relation])[0]

    alone = [ask(gamma, question) for question in questions]
    fresh = Gamma.from_pretrained()  # with nothing in its caches: that is where threads would meet
    with ThreadPoolExecutor(setting.effort.threads) as pool:
        together = list(pool.map(lambda question: ask(fresh, question), questions))
    for question, one, other in zip(questions, alone, together, strict=True):
        line.expect(torch.equal(one, other), f"{question}: differs by {float((one - other).abs().max())}")
    _many_predict(line, gamma, graphs, questions[::6], setting.effort.threads)


def _many_predict(
    line: Line, gamma: Gamma, graphs: Sequence[KnowledgeGraph], questions: Sequence[tuple[int, int, int]], threads: int
) -> None:
    """The same by names: with rules, and probabilities that are fitted once and kept."""
    from gamma_kg import Gamma

    def ask(model: Gamma, question: tuple[int, int, int]) -> list[tuple[str, float, float]]:
        kg = graphs[question[0]]
        names = {"head": kg.entities[question[1]], "relation": kg.relations[question[2] % kg.num_relations]}
        return [(a.name, a.score, a.probability) for a in model.predict(kg, **names, top_k=5)]

    alone, fresh = [ask(gamma, question) for question in questions], Gamma.from_pretrained()
    with ThreadPoolExecutor(threads) as pool:
        together = list(pool.map(lambda question: ask(fresh, question), questions))
    for question, one, other in zip(questions, alone, together, strict=True):
        line.expect(one == other and len(one) == 5, f"{question} by name: {one[:1]} alone, {other[:1]} together")


def _another() -> KnowledgeGraph:
    import numpy as np

    from gamma_kg import KnowledgeGraph

    rng = np.random.default_rng(1)
    triples = np.stack([rng.integers(0, n, 900) for n in (120, 5, 120)], axis=1)
    return KnowledgeGraph(triples, [f"e{i}" for i in range(120)], [f"r{i}" for i in range(5)])


# The child answers as its parent does, or says why not; it never hangs.
CHILD = """
child = os.fork()
if child == 0:
    try:
        same = bool((ask() == before).all())
    except Exception as found:
        print(type(found).__name__, found, file=sys.stderr)
        os._exit(2 if "forked" in str(found) else 1)
    os._exit(0 if same else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
START = "import os, sys\nfrom gamma_kg import Gamma, KnowledgeGraph\nfrom gamma_kg.demo import demo_graph\n"
ANEW = "ask = lambda: Gamma.from_pretrained().scores(demo_graph(), [0], [0])\n"
SAME = "kg, gamma = demo_graph(), Gamma.from_pretrained()\nask = lambda: gamma.scores(kg, [0], [0])\n"
THREAD = (
    "from threading import Thread\nfound = []\nthread = Thread(target=lambda: found.append(ask()))\n"
    "thread.start(); thread.join(); before = found[0]\n"
)
PARQUET = (
    "import polars as pl, tempfile\npath = tempfile.mkdtemp() + '/f.parquet'\n"
    "pl.DataFrame({'h': ['a', 'b'], 'r': ['r', 'r'], 't': ['b', 'c']}).write_parquet(path)\n"
    "ask = lambda: Gamma.from_pretrained().scores(KnowledgeGraph.from_file(path), [0], [0])\n"
)
FORKS = {
    "the import": START
    + "from torch import tensor\nbefore = tensor(0)\n"
    + ANEW
    + CHILD.replace("== before", "> -1e9"),
    "the first answer": START + SAME + "before = ask()\n" + CHILD,
    "the first answer, reading anew": START + ANEW + "before = ask()\n" + CHILD,
    "an answer of a thread": START + SAME + THREAD + CHILD,
    "reading Parquet, reading anew": START + PARQUET + "before = ask()\n" + CHILD,
}


def _forked(program: str) -> Attempt:
    def attempt(line: Line, setting: Setting) -> None:
        if not hasattr(os, "fork"):
            raise NotHereError("this system has no fork")
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=180,
                env=os.environ | {"OMP_NUM_THREADS": "2"},
            )  # fmt: skip
            line.expect(done.returncode in (0, 2), f"exit code {done.returncode}: {done.stderr[-300:]}")
            line.remark = "refused in a sentence" if done.returncode else "answered"
        except subprocess.TimeoutExpired:
            line.expect(False, "the child hangs")

    return attempt


def _one_of_two(line: Line, setting: Setting) -> None:
    """Two processes train together; one is killed: all end within a minute, the reason is told, and it goes on."""
    rng = random.Random(setting.effort.seed)
    for number in range(1 if setting.effort.is_short else 4):
        place = setting.fresh(f"torchrun{number}")
        process = _torchrun(place)
        victim = _wait_for(process.pid, rank=number % 2, until=place / "run" / "state.pt")
        if victim is None:
            process.kill()
            line.expect(False, f"the run did not begin: {process.communicate()[0][-400:]}")
            continue
        time.sleep(rng.uniform(0, 0.5))
        began = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        try:
            said, _ = process.communicate(timeout=2 * MINUTE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
        took = time.monotonic() - began
        line.expect(took < MINUTE, f"took {took:.0f} s to end")
        line.expect(process.returncode not in (0, None), f"exit code {process.returncode}")
        line.expect("SIGKILL" in said or "Signal 9" in said or "lost contact" in said, f"no reason: {said[-400:]}")
        line.expect(not orphans(process.pid), f"left the processes {orphans(process.pid)}")
        line.remark = f"ended after {took:.0f} s"
        again = _torchrun(place, "--resume")
        said, _ = again.communicate(timeout=600)
        line.expect(again.returncode == 0, f"did not go on: {said[-400:]}")
        shutil.rmtree(place)


def _torchrun(place: Path, *more: str) -> subprocess.Popen[str]:
    words = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "gamma_kg",
        "pretrain", "run.toml", "--out", "run", "--set", "steps=150", "--set", "checkpoint_steps=5", *more,
    ]  # fmt: skip
    return subprocess.Popen(
        words, cwd=place, env=environment(place), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip


def _wait_for(parent: int, rank: int, until: Path) -> int | None:
    """The process with this rank, once the run has saved something; None where it never does."""
    for _ in range(3000):
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent and until.exists():
                    words = (stat.parent / "environ").read_bytes().split(b"\0")
                    if f"RANK={rank}".encode() in words:
                        return int(stat.parent.name)
            except (OSError, IndexError):
                continue
        time.sleep(0.05)
    return None
