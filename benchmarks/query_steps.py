"""Logical queries of three steps against the way the official executor takes them; results: docs/logical-queries.md.

    python benchmarks/query_steps.py codex-s fb15k237 --threads 2 --data-dir DIR
    python benchmarks/query_steps.py codex-s --queries 5000 --batch 32 --threads 2 --data-dir DIR

The official code is no part of this: `gamma_kg/bench/torch_steps.py` takes the same steps by torch, and the sums over
edges are those of the loop below, compiled the way the official kernel is (-Ofast, for any x86-64, rows of all queries
of a batch side by side). It takes as many queries at once as `--batch` says (the commands of its README say 32), and
none of them twice; of a larger set it is timed on the first few batches. Ours takes the set as `gamma evaluate` does:
a first or second step that several queries share is computed once. Needs a C compiler. Times by the clock mean
something on an idle machine only; those of the processor, which are told beside, on one thread.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from gamma_kg import Gamma
from gamma_kg.bench.logical_queries import queries_of, run_batch
from gamma_kg.bench.timing import threads
from gamma_kg.bench.torch_steps import BATCH, Columns, Sums, TorchSteps
from gamma_kg.evaluation.logical import LARGEST_BATCH
from gamma_kg.logic.formula import Formula, beginning
from gamma_kg.logic.predicted import ULTRAQUERY, ModelProjection
from gamma_kg.logic.project import Projector

# Batches of a large set that the slow way is timed on.
TIMED_BATCHES = 4

LOOP = """
void sums(const long *start, const long *neighbour, const long *type, const float *weight, const float *relation,
          const float *state, float *out, long nodes, long width, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (long node = 0; node < nodes; ++node) {
        float *row = out + node * width;
        for (long i = 0; i < width; ++i) row[i] = 0;
        for (long edge = start[node]; edge < start[node + 1]; ++edge) {
            const float *r = relation + type[edge] * width, *x = state + neighbour[edge] * width, w = weight[edge];
            for (long i = 0; i < width; ++i) row[i] += w * (r[i] * x[i]);
        }
    }
}
"""


def compiled(folder: Path) -> Sums:
    """The sums by the loop above."""
    source, library = folder / "sums.c", folder / "sums.so"
    source.write_text(LOOP)
    subprocess.run(["gcc", "-Ofast", "-fopenmp", "-shared", "-fPIC", "-o", library, source], check=True)
    loop = ctypes.CDLL(str(library)).sums

    def sums(columns: Columns, table_RF: Tensor, x_NF: Tensor) -> Tensor:
        out_NF = torch.empty_like(x_NF)
        start_N1 = torch.zeros(len(x_NF) + 1, dtype=torch.long)
        start_N1[1:] = columns.node_E.bincount(minlength=len(x_NF)).cumsum(0)
        arrays = start_N1, columns.neighbour_E, columns.type_E, columns.weight_E, table_RF, x_NF, out_NF
        pointers = [ctypes.c_void_p(array.contiguous().data_ptr()) for array in arrays]
        loop(*pointers, *(ctypes.c_long(size) for size in x_NF.shape), torch.get_num_threads())
        return out_NF

    return sums


def in_batches(formulas: list[Formula], projector: Projector, size: int) -> None:
    for first in range(0, len(formulas), size):
        run_batch(formulas[first : first + size], projector)


def timed(task: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="+")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=BATCH, help="how many, of three steps each")
    parser.add_argument("--batch", type=int, default=BATCH, help="how many the official way takes at once")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--weights", default=None, help="ultraquery.pth, or untrained ones of its form if left out")
    given = parser.parse_args()
    gamma = Gamma.from_preset("ultra") if given.weights is None else Gamma.from_pretrained(given.weights)
    with tempfile.TemporaryDirectory() as folder, threads(given.threads):
        sums = compiled(Path(folder))
        for name in given.graph:
            kg, formulas = queries_of(name, given.data_dir, given.queries)
            some, alike = formulas[: TIMED_BATCHES * given.batch], sorted(formulas, key=beginning)
            whole = ModelProjection(gamma, kg, ULTRAQUERY, local="off")
            official = TorchSteps(gamma.model, kg, sums, given.batch)
            tasks = {
                "as the official executor": (partial(in_batches, some, official, given.batch), len(some)),
                "ours, whole graph": (partial(in_batches, alike, whole, LARGEST_BATCH), len(alike)),
            }
            near = ModelProjection(gamma, kg, ULTRAQUERY)
            if near.local is not None:
                tasks["ours, as asked (local)"] = partial(in_batches, alike, near, LARGEST_BATCH), len(alike)
            best = dict.fromkeys(tasks, (float("inf"), float("inf")))
            for turn in range(given.rounds + 1):
                for what, (task, count) in tasks.items():
                    clock, processor = (1e3 * seconds / count for seconds in timed(task))
                    if turn:  # the first one warms up
                        best[what] = min(best[what][0], clock), min(best[what][1], processor)
            slow = best["as the official executor"]
            for what, (clock, processor) in best.items():
                shown = f"{clock:.1f} ms a query ({slow[0] / clock:.1f} ×)"
                of_processor = f"{processor:.1f} of the processor ({slow[1] / processor:.1f} ×)"
                print(f"{name}, {given.threads} threads, {what}: {shown}, {of_processor}", flush=True)


if __name__ == "__main__":
    main()
