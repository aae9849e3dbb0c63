"""Local answers against those of the whole graph on benchmark sets: mean reciprocal ranks of the same triples.

    python benchmarks/local_quality.py --out results/local fb15k237 codex-m wn18rr

Each set is ranked twice, from neighbourhoods and from the whole graph. A set that "auto" would compute whole, because
it is cheap, is ranked with the budget that a set of its density gets. What is done stays in --out, so that a long run
can be cut into pieces; without sets the table of all that is there is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.benchmark import evaluate_benchmark
from gamma_kg.evaluation.options import EvaluationOptions
from gamma_kg.evaluation.store import read_result
from gamma_kg.predicting.models import NamedModel, resolve_model
from gamma_kg.predicting.switch import budget_of, triples_for


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--split", default="test", choices=("valid", "test"))
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--model")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    model = resolve_model(given.model) if given.sets else None
    for name in given.sets:
        assert model is not None
        print(name, *rank(name, model, given), flush=True)
    show(given.out)


def rank(name: str, model: NamedModel, given: argparse.Namespace) -> tuple[float, float]:
    """MRR of local answers and of those from the whole graph."""
    benchmark = load_benchmark(name, given.data_dir)
    split = benchmark.split(given.split)
    triples = budget_of(split.num_entities, len(split.graph))
    found = []
    for local in (triples, "off"):
        options = EvaluationOptions(split=given.split, limit=given.limit, local=local)
        found.append(evaluate_benchmark(benchmark, model, options, out=given.out)["mrr"])
    return found[0], found[1]


def show(out: Path) -> None:
    """A table of all sets that are ranked both ways; ± is the standard error of the difference over triples."""
    print(
        "| set | triples ranked | neighbourhood | local | whole | difference | ± | what `auto` gives |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    differences, by_itself = [], []
    for path in sorted(out.glob("*.local*.json")):
        beside = out / path.name.replace(".local", "")
        if not beside.is_file():
            continue
        near, whole = read_result(path), read_result(beside)
        gain = reciprocal_ranks(path) - reciprocal_ranks(beside)
        is_whole = triples_for(near["graph"]["entities"], near["graph"]["triples"], "auto") is None
        differences.append(gain.mean())
        by_itself.append(0.0 if is_whole else gain.mean())
        cells = [near["dataset"], f"{near['triples']:,}", f"{near['local']:,}", f"{near['mrr']:.4f}"]
        cells += [f"{whole['mrr']:.4f}", f"{gain.mean():+.4f}", f"{gain.std() / len(gain) ** 0.5:.3f}"]
        print(f"| {' | '.join(cells)} | {'0 (whole)' if is_whole else f'{by_itself[-1]:+.4f}'} |", flush=True)
    if differences:
        print(f"| mean | | | | | {np.mean(differences):+.4f} | | {np.mean(by_itself):+.4f} |")


def reciprocal_ranks(result: Path) -> NDArray[np.float64]:
    """Of each triple, the mean of both directions; a tie counts against the model."""
    with np.load(result.parent / "ranks" / f"{result.stem}.npz") as ranks:
        each: NDArray[np.float64] = 1 / (1.0 + ranks["above"] + ranks["tied"])
    return each.reshape(2, -1).mean(axis=0)


if __name__ == "__main__":
    main()
