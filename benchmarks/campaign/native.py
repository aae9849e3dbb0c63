"""The C++ engine: under sanitizers, on every instruction set, and with graphs and weights at the edge."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from campaign.extremes import EXTREMES
from campaign.lines import Effort, Line, NotHereError
from campaign.setting import Attempt, Setting

ROOT = Path(__file__).resolve().parents[2]
SETS, SANITIZED = "native: instruction sets on a real graph", "native: kernels' tests with ASan and UBSan"
# In the short campaign left out: a million edges, and a build of the engine.
LONG = ("native: a hub with 10^6 edges", SANITIZED)


def native_code(effort: Effort) -> dict[str, Attempt]:
    """The sanitizers first: they take the longest."""
    found: dict[str, Attempt] = {SANITIZED: _sanitized, SETS: _instruction_sets}
    found |= {f"native: {name}": _extreme(name) for name in EXTREMES}
    return {name: attempt for name, attempt in found.items() if not (effort.is_short and name in LONG)}


def _sanitized(line: Line, setting: Setting) -> None:
    done = subprocess.run(["make", "sanitized"], cwd=ROOT, capture_output=True, text=True)
    passed = re.search(r"(\d+) passed", done.stdout)
    line.tried = int(passed[1]) if passed else 0
    line.expect(done.returncode == 0, f"exit code {done.returncode}: {done.stdout[-300:]} {done.stderr[-500:]}")


def _extreme(name: str) -> Attempt:
    def attempt(line: Line, setting: Setting) -> None:
        words = [sys.executable, str(Path(__file__).with_name("extremes.py")), name]
        done = subprocess.run(words, capture_output=True, text=True)
        # A crash ends the process without a word: that is one wrong try.
        found = [text for text in done.stdout.splitlines() if text]
        line.tried = len(found)
        line.wrong = [text for text in found if not text.startswith("held")]
        line.expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-300:]}")

    return attempt


def _instruction_sets(line: Line, setting: Setting) -> None:
    """Scores of the bundled model by each instruction set against plain torch, on a graph that people made."""
    import torch

    from gamma_kg import Gamma, KnowledgeGraph
    from gamma_kg.demo import demo_graph
    from gamma_kg.kernels import native
    from gamma_kg.kernels.backend import plain_torch
    from gamma_kg.kernels.native.loading import INSTRUCTION_SETS

    real = ROOT.parent / "shared" / "datasets" / "fb15k237-v1" / "train.txt"
    kg = KnowledgeGraph.from_file(real) if real.exists() else demo_graph()
    line.remark = f"{'fb15k237-v1' if real.exists() else 'demo'}, {len(kg.triples):,} facts"
    gamma, module = Gamma.from_pretrained(), native.module()
    seed = torch.Generator().manual_seed(0)
    questions = [torch.randint(0, most, (6,), generator=seed) for most in (kg.num_entities, kg.num_types)]
    heads, relations = (part.tolist() for part in questions)
    with plain_torch():
        wanted = gamma.scores(kg, heads, relations)
    if module is None:
        raise NotHereError("the engine is not built")
    before = module.isa()
    for name in INSTRUCTION_SETS:
        if module.use_isa(name):
            found = Gamma.from_pretrained().scores(kg, heads, relations)
            for q in range(len(heads)):
                far = float((found[q] - wanted[q]).abs().max() / wanted[q].abs().max())
                line.expect(far < 1e-4, f"{name}, query {q}: differs by {far:.1e} of the largest score")
                line.expect(bool(found[q].argmax() == wanted[q].argmax()), f"{name}, query {q}: another first answer")
    module.use_isa(before)
