"""What learning one graph gains: test triples of benchmarks before and after, the same queries for both.

    python benchmarks/adapting.py metafam nl-0 --minutes 5 --limit 500 --out runs/adapting
    python benchmarks/adapting.py metafam nl-0 --facts both --out runs/finetuning

`--facts graph` adapts to the inference graph of a set, `train` fine-tunes on its training facts, `both` does one after
the other. Test triples are read after the weights were judged, and decide nothing. One JSON file per set: a set that
has one is not done again, and a run that was stopped goes on. Ranks of the model at the start lie in `--ranks`, so that
another run with the same start does not make them again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.data.benchmark import Benchmark, Split, load_benchmark
from gamma_kg.errors import DataError
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.io.atomic import write_text
from gamma_kg.predicting.weights import load_one
from gamma_kg.training.finetune import RESULT, finetune_config, load_target, run_finetune
from gamma_kg.training.judgement import Verdict


def graph_file(benchmark: Benchmark) -> Path:
    """The file of the graph that the test triples are asked of."""
    return benchmark.files[benchmark.protocol.graph["test"]]


def reciprocal(gamma: Gamma, split: Split, plan: QueryPlan, kept: Path | None = None) -> np.ndarray:
    """1 / fair rank of every planned answer; read from the file `kept` where that is there."""
    if kept is not None and kept.is_file():
        return np.array(json.loads(kept.read_text("utf-8")))
    found = 1 / rank_split(gamma, split, plan).fair_rank()
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_text(kept, json.dumps(found.tolist()))
    return found


def compared(split: Split, limit: int, before: Gamma, after: Gamma, kept: Path) -> dict[str, float]:
    """Both models on the same triples; the error is that of the mean of the differences."""
    plan = QueryPlan.build(split, limit=limit)
    old = reciprocal(before, split, plan, kept)
    new = old if after is before else reciprocal(after, split, plan)
    return {
        "triples": len(plan) // 2,
        "before": float(old.mean()),
        "after": float(new.mean()),
        "gain": float((new - old).mean()),
        "error": float((new - old).std() / np.sqrt(len(old))),
    }


@dataclass(frozen=True)
class Learnt:
    """The weights that were kept, and how it went."""

    gamma: Gamma
    steps: int
    status: str
    verdict: Verdict


def adapted(name: str, benchmark: Benchmark, start: Gamma, options: argparse.Namespace) -> Learnt:
    """Learn the inference graph from itself."""
    kg = KnowledgeGraph.from_file(graph_file(benchmark), format="tsv", header=False)
    folder = options.out / f"{name}.adapt"
    resume = (folder / "state.pt").is_file()
    how = {"minutes": options.minutes, "steps": options.steps, "seed": options.seed, "name": name}
    done = start.adapt(kg, folder=folder, resume=resume, **how)
    return Learnt(done.gamma, done.steps, done.status, done.verdict)


def finetuned(name: str, options: argparse.Namespace) -> Learnt:
    """Learn the set's training facts."""
    target, start = load_target(name, options.data_dir), load_one(options.model)
    config, folder = finetune_config(target).with_options(seed=options.seed), options.out / f"{name}.finetune"
    budget = {"steps": options.steps} if options.steps else {"steps": None, "minutes": options.minutes}
    if options.steps:
        budget["validate_steps"] = max(1, options.steps // 4)
    resume = (folder / "state.pt").is_file()
    outcome, verdict = run_finetune(target, start, config.with_options(**budget), folder, resume=resume)
    return Learnt(Gamma.from_pretrained(folder / RESULT), outcome.counters.step, outcome.status, verdict)


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Learn from what is allowed, then rank the set's triples."""
    benchmark = load_benchmark(name, options.data_dir)
    start = Gamma.from_pretrained(options.model)
    wall, processor = time.monotonic(), time.process_time()
    learnt = {}
    if options.facts in ("train", "both"):
        learnt["finetune"] = finetuned(name, options)
    refused = ""
    if options.facts in ("graph", "both"):
        begun = learnt["finetune"].gamma if learnt else start
        try:
            learnt["adapt"] = adapted(name, benchmark, begun, options)
        except DataError as error:
            refused = str(error)
    took = {"wall": time.monotonic() - wall, "processor": time.process_time() - processor}
    result = list(learnt.values())[-1].gamma if learnt else start
    kept = [step for step, done in learnt.items() if done.verdict.is_better]
    ranks = f"{Path(options.model).stem if options.model else 'bundled'}-{options.limit}-{name}"
    return {
        "set": name,
        "facts": options.facts,
        "asked": {"steps": options.steps} if options.steps else {"minutes": options.minutes},
        "seconds": took,
        "threads": torch.get_num_threads(),
        "kept": kept,
        "refused": refused,
        "learnt": {
            step: {"steps": done.steps, "status": done.status, **done.verdict.to_dict()}
            for step, done in learnt.items()
        },
        **{
            part: compared(
                benchmark.split(part),
                options.limit,
                start,
                result if kept else start,
                options.ranks / f"{ranks}-{part}.json",
            )
            for part in options.splits
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--facts", choices=("graph", "train", "both"), default="graph")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--steps", type=int, help="instead of minutes: the same work on a slow and on a fast day")
    parser.add_argument("--limit", type=int, default=500, help="test triples of each set")
    parser.add_argument("--splits", default="test", type=lambda text: text.split(","), help="test, valid or both")
    parser.add_argument("--model", help="weights to start from; else the bundled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/adapting"))
    parser.add_argument("--ranks", type=Path, default=Path("runs/ranks"), help="of the model at the start")
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
