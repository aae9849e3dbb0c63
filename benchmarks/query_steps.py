"""Logical queries of three steps against the way the official executor takes them; docs/how-to/ask.md has the results.

    python benchmarks/query_steps.py codex-s fb15k237 --threads 2 --data-dir DIR

The official code is no part of this: `gamma_kg/bench/torch_steps.py` takes the same steps by torch, and the sums over
edges are those of the loop below, compiled the way the official kernel is (-Ofast, for any x86-64, rows of all queries
of a batch side by side). Needs a C compiler. Times by the clock mean something on an idle machine only; those of the
processor, which are told beside, on one thread.
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
from gamma_kg.logic.predicted import ULTRAQUERY, ModelProjection

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
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--weights", default=None, help="ultraquery.pth, or untrained ones of its form if left out")
    given = parser.parse_args()
    gamma = Gamma.from_preset("ultra") if given.weights is None else Gamma.from_pretrained(given.weights)
    with tempfile.TemporaryDirectory() as folder, threads(given.threads):
        sums = compiled(Path(folder))
        for name in given.graph:
            kg, formulas = queries_of(name, given.data_dir)
            whole = ModelProjection(gamma, kg, ULTRAQUERY, local="off")
            projectors = {"as the official executor": TorchSteps(gamma.model, kg, sums), "ours, whole graph": whole}
            near = ModelProjection(gamma, kg, ULTRAQUERY)
            if near.local is not None:
                projectors["ours, as asked (local)"] = near
            best = dict.fromkeys(projectors, (float("inf"), float("inf")))
            for turn in range(given.rounds + 1):
                for what, projector in projectors.items():
                    taken = timed(partial(run_batch, formulas, projector))
                    if turn:  # the first one warms up
                        best[what] = min(best[what][0], taken[0]), min(best[what][1], taken[1])
            slow = best["as the official executor"]
            for what, taken in best.items():
                clock, processor = (1e3 * seconds / BATCH for seconds in taken)
                shown = f"{clock:.1f} ms a query ({slow[0] / taken[0]:.1f} ×)"
                of_processor = f"{processor:.1f} of the processor ({slow[1] / taken[1]:.1f} ×)"
                print(f"{name}, {given.threads} threads, {what}: {shown}, {of_processor}", flush=True)


if __name__ == "__main__":
    main()
