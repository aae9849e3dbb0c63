"""One model used by many threads on two graphs at once gives the answers that it gives alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from campaign.lines import Effort, Line


def many_threads(folder: Path, effort: Effort) -> Iterator[Line]:
    import torch

    from gamma_kg import Gamma, KnowledgeGraph
    from gamma_kg.demo import demo_graph

    line = Line(f"one model, {effort.threads} threads, two graphs")
    gamma, graphs = Gamma.from_pretrained(), [demo_graph(), _another()]
    questions = [(g, e % kg.num_entities, e % (2 * kg.num_relations)) for g, kg in enumerate(graphs) for e in range(60)]

    def ask(model: Gamma, question: tuple[int, int, int]) -> torch.Tensor:
        g, entity, relation = question
        return model.scores(graphs[g], [entity], [relation])[0]

    alone = [ask(gamma, question) for question in questions]
    fresh = Gamma.from_pretrained()  # with nothing in its caches: that is where threads would meet
    with ThreadPoolExecutor(effort.threads) as pool:
        together = list(pool.map(lambda question: ask(fresh, question), questions))
    for question, one, other in zip(questions, alone, together, strict=True):
        line.expect(torch.equal(one, other), f"{question}: differs by {float((one - other).abs().max())}")
    assert isinstance(graphs[1], KnowledgeGraph)
    yield line
    yield _after_fork()


def _another() -> object:
    import numpy as np

    from gamma_kg import KnowledgeGraph

    rng = np.random.default_rng(1)
    triples = np.stack([rng.integers(0, n, 900) for n in (120, 5, 120)], axis=1)
    return KnowledgeGraph(triples, [f"e{i}" for i in range(120)], [f"r{i}" for i in range(5)])


def _after_fork() -> Line:
    """A process that has used its threads and forks: the child answers, or says why not, and never hangs."""
    line = Line("fork after the first answer")
    if not hasattr(os, "fork"):
        line.skipped = "this system has no fork"
        return line
    program = (
        "import os, sys\n"
        "from gamma_kg import Gamma\n"
        "from gamma_kg.demo import demo_graph\n"
        "kg, gamma = demo_graph(), Gamma.from_pretrained()\n"
        "before = gamma.scores(kg, [0], [0])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        same = bool((gamma.scores(kg, [0], [0]) == before).all())\n"
        "    except Exception as found:\n"
        "        print(type(found).__name__, found, file=sys.stderr)\n"
        "        os._exit(2)\n"
        "    os._exit(0 if same else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        line.expect(done.returncode in (0, 2), f"exit code {done.returncode}: {done.stderr[-300:]}")
    except subprocess.TimeoutExpired:
        line.expect(False, "the child hangs")
    return line
