"""How scores become degrees: variants on VALIDATION queries of several graphs; docs/logical-queries.md has the results.

    python benchmarks/query_choices.py nl-100 nl-0 fb15k237-v1 --per-type 25 --data-dir DIR

Prints MRR of hard answers (EPFO and negation, ties against the model) and the error of cardinality, then the means.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from gamma_kg import Gamma
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.logical import evaluate_queries
from gamma_kg.evaluation.split_graph import graph_of
from gamma_kg.logic.predicted import ModelProjection, StepOptions
from gamma_kg.logic.sample import Facts, sample_queries
from gamma_kg.predicting.switch import Local

NOW = StepOptions()
# Name: how a step is taken, and whether the whole graph is computed on.
VARIANTS: dict[str, tuple[StepOptions, Local]] = {
    "as it is": (NOW, "off"),
    "share .3": (replace(NOW, share=0.3), "off"),
    "share .9": (replace(NOW, share=0.9), "off"),
    "share .1, all relations alike": (replace(NOW, share=0.1, usual=False), "off"),
    "share .3, all relations alike": (replace(NOW, share=0.3, usual=False), "off"),
    "weights are the degrees": (replace(NOW, unit=False), "off"),
    "threshold .3": (replace(NOW, threshold=0.3), "off"),
    "facts as the model says": (replace(NOW, facts=False), "off"),
    "on the asked relation": (replace(NOW, direct=False), "off"),
    "local": (NOW, "auto"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="+")
    parser.add_argument("--per-type", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(VARIANTS), help="may be repeated; else all")
    parser.add_argument("--model", default=None)
    parser.add_argument("--local", default=None, help="triples of a neighbourhood, instead of those of `predict`")
    parser.add_argument("--data-dir", type=Path, default=None)
    given = parser.parse_args()
    gamma = Gamma.from_pretrained(given.model) if given.model else Gamma.from_pretrained()
    found: dict[str, list[tuple[float, float, float]]] = {}
    for name in given.graph:
        split = load_benchmark(name, given.data_dir).split("valid")
        facts = Facts(split.graph, split.known, split.num_entities, split.num_relations)
        queries, kg = sample_queries(facts, given.per_type, seed=given.seed), graph_of(split)
        for variant in given.only or VARIANTS:
            options, local = VARIANTS[variant]
            local = given.local if given.local and local == "auto" else local
            result = evaluate_queries(queries, ModelProjection(gamma, kg, options, local=local))["classic"]
            epfo, negation = result["epfo"], result.get("negation", {"mrr": float("nan")})
            figures = epfo["mrr"], negation["mrr"], epfo["cardinality_error"]
            found.setdefault(variant, []).append(figures)
            print(name, variant, *(f"{figure:.4f}" for figure in figures), sep="\t", flush=True)
    for variant, rows in found.items():
        print(f"mean of {len(rows)}", variant, *(f"{figure:.4f}" for figure in np.nanmean(rows, axis=0)), sep="\t")


if __name__ == "__main__":
    main()
