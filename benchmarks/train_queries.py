"""Trains the step of logical queries from the bundled weights of link prediction; results: docs/logical-queries.md.

    python benchmarks/train_queries.py --out queries.safetensors --minutes 10 --data-dir DIR

Queries of 1 to 3 steps are sampled on pieces of FB15k-237, WN18RR and CoDEx-M with 10 to 40 % of the facts hidden. The
rate falls with the time of the processor or the steps used up, whichever is further.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from gamma_kg import Gamma
from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.logic.predicted import StepOptions
from gamma_kg.nn.checkpoint import save_checkpoint
from gamma_kg.nn.model import GammaModel
from gamma_kg.predicting.weights import bundled
from gamma_kg.training.logical_queries import QueryTraining, train_queries
from gamma_kg.training.run_record import run_record
from gamma_kg.training.training_graphs import load_graphs

GRAPHS = ("fb15k237", "wn18rr", "codex-m")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("queries.safetensors"))
    parser.add_argument("--start", default=next(iter(bundled())), help="weights to train from")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--data-dir", type=Path, default=None)
    given = parser.parse_args()
    named = load_graphs(GRAPHS, given.data_dir)
    graphs = [one.graph for one in named if isinstance(one.graph, TrainingGraph)]
    model = Gamma.from_pretrained(given.start).model
    losses: list[float] = []

    def save(average: GammaModel) -> None:
        origin = {
            "origin": f"trained on logical queries of 1 to 3 steps, from {given.start}: benchmarks/train_queries.py",
            "weights": "moving average",
            "step": len(losses),
            "steps": asdict(StepOptions()),
            "trained_for": "queries",
            **run_record(named),
        }
        save_checkpoint(given.out, average, origin)

    def log(step: int, loss: float, average: GammaModel) -> None:
        losses.append(loss)
        if step % 50 == 0:  # a run that is cut off leaves what it has come to
            print(f"step {step}: loss {sum(losses[-50:]) / 50:.3f}", flush=True)
            save(average)

    # Members below the threshold are left out while training, which is quicker; answers are given with all of them.
    config = QueryTraining(minutes=given.minutes, steps=given.steps, learning_rate=given.rate)
    average = train_queries(model, graphs, StepOptions(threshold=0.05), config, log)
    save(average)
    print(f"{given.out}: {len(losses)} steps")


if __name__ == "__main__":
    main()
