"""Local answers against those of the whole graph on benchmark sets: mean reciprocal ranks of the same triples.

    python benchmarks/local_quality.py --out results/local fb15k237 codex-m wn18rr

Each set is ranked twice, from neighbourhoods and from the whole graph. A set that "auto" would compute whole, because
it is cheap, is ranked with the budget that a set of its density gets. What is done stays in --out, so that a long run
can be cut into pieces; without sets the table of all that is there is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.benchmark import EvaluationOptions, evaluate_benchmark
from gamma_kg.evaluation.store import read_result
from gamma_kg.predicting.models import NamedModel, resolve_model
from gamma_kg.predicting.switch import budget_of


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
    """A table of all sets that are ranked both ways."""
    print("| set | triples ranked | neighbourhood | local | whole | difference |\n|---|---|---|---|---|---|")
    differences = []
    for path in sorted(out.glob("*.local*.json")):
        beside = out / path.name.replace(".local", "")
        if not beside.is_file():
            continue
        near, whole = read_result(path), read_result(beside)
        differences.append(near["mrr"] - whole["mrr"])
        cells = [near["dataset"], f"{near['triples']:,}", f"{near['local']:,}", f"{near['mrr']:.4f}"]
        print(f"| {' | '.join(cells)} | {whole['mrr']:.4f} | {differences[-1]:+.4f} |")
    if differences:
        print(f"| mean | | | | | {sum(differences) / len(differences):+.4f} |")


if __name__ == "__main__":
    main()
