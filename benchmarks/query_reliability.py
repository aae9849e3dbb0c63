"""What `ask` says of its new answers and how often they are right, per graph; docs/logical-queries.md has the results.

    python benchmarks/query_reliability.py nl-100 fb15k237-v2 --per-type 20 --data-dir DIR

Queries of the 14 shapes that have an answer by the graph as it is are sampled, without a look at what is held out, and
asked there. Of the answers that do not follow from it, right are those that follow with the held-out facts: a floor,
for facts that nobody wrote down count as wrong. ECE is the mean difference between what was said and what held, over
ten equal ranges of probability.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

from gamma_kg import Gamma, ask
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.split_graph import graph_of
from gamma_kg.logic.formula import has_negation
from gamma_kg.logic.sample import Facts, sample_queries
from gamma_kg.logic.traverse import traverse

EDGES = np.array([0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0000001])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="+")
    parser.add_argument("--per-type", type=int, default=20)
    parser.add_argument("--split", default="test")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--calibrate", action="store_true", help="fit probabilities to each graph first")
    parser.add_argument("--data-dir", type=Path, default=None)
    given = parser.parse_args()
    gamma = Gamma.from_pretrained()
    for name in given.graph:
        split = load_benchmark(name, given.data_dir).split(given.split)
        kg = graph_of(split)
        if given.calibrate:
            gamma.calibrate(kg)
        sizes = split.num_entities, split.num_relations
        facts, graph = Facts(split.graph, split.known, *sizes), Facts(split.graph[:0], split.graph, *sizes)
        said: list[float] = []
        held: list[bool] = []
        denies: list[bool] = []
        for query in sample_queries(graph, given.per_type, seed=0):
            right = {kg.entities[int(i)] for i in traverse(query.formula, facts.true, split.num_entities)}
            for answer in ask(kg, query.formula, gamma, top_k=given.top_k, only_new=True):
                said.append(answer.probability)
                held.append(answer.name in right)
                denies.append(has_negation(query.formula))
        for what, chosen in (("all", np.ones(len(said), bool)), ("with a denial", np.array(denies))):
            show(f"{name}, {what}", np.array(said)[chosen], np.array(held)[chosen])


def show(title: str, said: np.ndarray, held: np.ndarray) -> None:
    tenth = np.minimum((said * 10).astype(int), 9)
    error = sum(abs(said[tenth == i].mean() - held[tenth == i].mean()) * np.mean(tenth == i) for i in np.unique(tenth))
    print(f"{title}: {len(said)} answers, said {said.mean():.3f}, held {held.mean():.3f}, ECE {error:.3f}", flush=True)
    for low, high in pairwise(EDGES):
        inside = (said >= low) & (said < high)
        if inside.any():
            shown = f"said {said[inside].mean():.1%}, held {held[inside].mean():.1%} ({inside.sum()} answers)"
            print(f"  {low:.0%} to {min(high, 1):.0%}: {shown}", flush=True)


if __name__ == "__main__":
    main()
