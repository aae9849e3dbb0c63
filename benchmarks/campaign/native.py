"""The C++ engine: under sanitizers, on every instruction set, and with graphs and weights at the edge."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from campaign.extremes import EXTREMES
from campaign.lines import Effort, Line

ROOT = Path(__file__).resolve().parents[2]
SETS, SANITIZED = "native: instruction sets on a real graph", "native: kernels' tests with ASan and UBSan"
# In the short campaign left out: a million edges, and a build of the engine.
LONG = ("native: a hub with 10^6 edges", SANITIZED)


def native_names(effort: Effort) -> list[str]:
    """The sanitizers first: they take the longest."""
    names = [SANITIZED, SETS, *(f"native: {name}" for name in EXTREMES)]
    return [name for name in names if not (effort.is_short and name in LONG)]


def native_code(folder: Path, effort: Effort) -> Iterator[Line]:
    line = Line(SETS)
    if effort.wants(line.name):
        yield _instruction_sets(line)
    for name in EXTREMES:
        line = Line(f"native: {name}")
        if effort.wants(line.name) and not (effort.is_short and line.name in LONG):
            done = subprocess.run(
                [sys.executable, str(Path(__file__).with_name("extremes.py")), name], capture_output=True, text=True
            )
            # A crash ends the process without a word: that is one wrong try.
            found = [text for text in done.stdout.splitlines() if text]
            line.tried = sum(text.startswith("held") for text in found)
            line.wrong = [text for text in found if not text.startswith("held")]
            line.tried += len(line.wrong)
            line.expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-300:]}")
            yield line
    line = Line(SANITIZED)
    if effort.wants(line.name) and not effort.is_short:
        done = subprocess.run(["make", "sanitized"], cwd=ROOT, capture_output=True, text=True)
        passed = re.search(r"(\d+) passed", done.stdout)
        line.tried = int(passed[1]) if passed else 0
        line.expect(done.returncode == 0, f"exit code {done.returncode}: {done.stdout[-300:]} {done.stderr[-500:]}")
        yield line


def _instruction_sets(line: Line) -> Line:
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
        line.skipped = "the engine is not built"
        return line
    before = module.isa()
    for name in INSTRUCTION_SETS:
        if module.use_isa(name):
            found = Gamma.from_pretrained().scores(kg, heads, relations)
            for q in range(len(heads)):
                far = float((found[q] - wanted[q]).abs().max() / wanted[q].abs().max())
                line.expect(far < 1e-4, f"{name}, query {q}: differs by {far:.1e} of the largest score")
                line.expect(bool(found[q].argmax() == wanted[q].argmax()), f"{name}, query {q}: another first answer")
    module.use_isa(before)
    return line
