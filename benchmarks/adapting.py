"""What adapting gains: test triples of benchmarks before and after, the same queries for both.

    python benchmarks/adapting.py metafam nl-0 --minutes 5 --limit 500 --out runs/adapting

Only the inference graph of a set is adapted to. Test triples are read after the weights were judged, and decide
nothing. One JSON file per set: a set that has one is not done again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.data.benchmark import Benchmark, Split, load_benchmark
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.io.atomic import write_text


def graph_file(benchmark: Benchmark) -> Path:
    """The file of the graph that the test triples are asked of."""
    return benchmark.files[benchmark.protocol.graph["test"]]


def reciprocal(gamma: Gamma, split: Split, plan: QueryPlan) -> np.ndarray:
    """1 / fair rank of every planned answer."""
    return 1 / rank_split(gamma, split, plan).fair_rank()


def compared(split: Split, limit: int, before: Gamma, after: Gamma) -> dict[str, float]:
    """Both models on the same triples; the error is that of the mean of the differences."""
    plan = QueryPlan.build(split, limit=limit)
    old = reciprocal(before, split, plan)
    new = old if after is before else reciprocal(after, split, plan)
    return {
        "triples": len(plan) // 2,
        "before": float(old.mean()),
        "after": float(new.mean()),
        "gain": float((new - old).mean()),
        "error": float((new - old).std() / np.sqrt(len(old))),
    }


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Adapt to one set's inference graph, then rank its triples."""
    benchmark = load_benchmark(name, options.data_dir)
    kg = KnowledgeGraph.from_file(graph_file(benchmark), format="tsv", header=False)
    gamma = Gamma.from_pretrained(options.model)
    wall, processor = time.monotonic(), time.process_time()
    folder = options.out / f"{name}.run"
    done = gamma.adapt(
        kg,
        minutes=options.minutes,
        steps=options.steps,
        seed=options.seed,
        name=name,
        folder=folder,
        resume=(folder / "state.pt").is_file(),
    )
    took = {"wall": time.monotonic() - wall, "processor": time.process_time() - processor}
    ranked = {part: compared(benchmark.split(part), options.limit, gamma, done.gamma) for part in options.splits}
    return {
        "set": name,
        "steps": done.steps,
        "status": done.status,
        "asked": {"steps": options.steps} if options.steps else {"minutes": options.minutes},
        "seconds": took,
        "threads": torch.get_num_threads(),
        "kept": done.verdict.is_better,
        "judged": done.verdict.to_dict(),
        **ranked,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--steps", type=int, help="instead of minutes: the same work on a slow and on a fast day")
    parser.add_argument("--limit", type=int, default=500, help="test triples of each set")
    parser.add_argument("--splits", default="test", type=lambda text: text.split(","), help="test, valid or both")
    parser.add_argument("--model", help="weights to start from; else the bundled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/adapting"))
    options = parser.parse_args()
    for name in options.sets:
        path = options.out / f"{name}.json"
        if not path.is_file():
            found = run(name, options)
            options.out.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(found, indent=1))
        print(json.dumps(json.loads(path.read_text("utf-8"))))


if __name__ == "__main__":
    main()
