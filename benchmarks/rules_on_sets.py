"""Do rules hide right answers? MRR of validation triples without rules and with them, set by set, from the same scores.

    python benchmarks/rules_on_sets.py --out results/rules metafam nell-v3 …

ranks --triples validation triples of each set, and looks at --looked-at of them for right answers that the rules hide,
which needs no model (--triples 0: nothing else). Without sets the table of all that --out holds is printed. Rules are
chosen on validation triples; --split test, with another --out, is for reporting, and for sets that have no others.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamma_kg.data.benchmark import Split, load_benchmark
from gamma_kg.evaluation.evaluate import SplitRanker
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.evaluation.ranking import RivalCounts
from gamma_kg.evaluation.split_graph import graph_of
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.io.atomic import write_text
from gamma_kg.predicting.answer_options import AS_PUBLISHED, AnswerOptions
from gamma_kg.predicting.models import resolve_model
from gamma_kg.predicting.predictor import Predictor
from gamma_kg.rules import rules_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--split", choices=("valid", "test"), default="valid")
    parser.add_argument("--model")
    parser.add_argument("--triples", type=int, default=150)
    parser.add_argument("--looked-at", type=int, default=1500)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.sets:
        split = load_benchmark(name, given.data_dir).split(given.split)
        row: dict[str, Any] = {"split": given.split, **hidden(split, given.looked_at)}
        if given.triples:
            model = resolve_model(given.model, "cpu")
            row |= {"model": model.hash, **ranked(model.predictor, split, given.triples)}
        write_text(given.out / f"{name}.json", json.dumps(row))
    show(given.out)


def hidden(split: Split, most: int) -> dict[str, int]:
    """How many right answers there were to look at, and how many of them the rules would not show."""
    plan = QueryPlan.build(split, limit=most)
    rules = rules_of(graph_of(split))
    count = 0
    for batch in plan.batches():
        blocked = [rules.blocked(*query) for query in zip(batch.source.tolist(), batch.relation.tolist(), strict=True)]
        count += sum(bool(blocked[row][answer]) for row, answer in zip(batch.row, batch.answer, strict=True))
    return {"looked at": len(plan), "hidden": count}


class _OneScore:
    """A predictor that is asked twice in a row for the same batch and computes it once."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._asked: tuple[torch.Tensor, torch.Tensor] | None = None
        self._scores = torch.empty(0)

    def scores(self, kg: KnowledgeGraph, source: torch.Tensor, relation: torch.Tensor, **how: Any) -> torch.Tensor:
        if self._asked is None or not (torch.equal(self._asked[0], source) and torch.equal(self._asked[1], relation)):
            self._scores = self._predictor.scores(kg, source, relation, **how)
            self._asked = source, relation
        return self._scores.clone()


def ranked(predictor: Predictor, split: Split, limit: int) -> dict[str, float]:
    plan = QueryPlan.build(split, limit=limit)
    once: Any = _OneScore(predictor)
    ways = AS_PUBLISHED, AnswerOptions(rules=True, local=AS_PUBLISHED.local)
    rankers = [SplitRanker(once, split, how) for how in ways]
    counts = [RivalCounts.empty(len(plan)) for _ in ways]
    for batch in plan.batches():
        for ranker, count in zip(rankers, counts, strict=True):
            ranker.rank(batch, count)
    without, with_ = (1 / count.published_rank() for count in counts)
    half = 1.96 * float(np.std(with_ - without)) / len(plan) ** 0.5
    return {"queries": len(plan), "without": float(without.mean()), "with": float(with_.mean()), "±": half}


def show(out: Path) -> None:
    print("\n| set | right answers hidden | MRR without | with rules | difference |\n|---|---|---|---|---|")
    rows = {path.stem: json.loads(path.read_text()) for path in sorted(out.glob("*.json"))}
    for name, row in rows.items():
        figures = ""
        if "with" in row:
            change = f"{row['with'] - row['without']:+.4f} ± {row['±']:.4f}"
            figures = f"{row['without']:.4f} | {row['with']:.4f} | {change}"
        print(f"| {name} | {row['hidden']} of {row['looked at']:,} | {figures or '| |'} |")
    ranked_ = [row for row in rows.values() if "with" in row]
    if ranked_:
        means = [float(np.mean([row[way] for row in ranked_])) for way in ("without", "with")]
        seen = f"{sum(row['hidden'] for row in rows.values())} of {sum(row['looked at'] for row in rows.values()):,}"
        name = f"all {len(rows)}; mean of {len(ranked_)}"
        print(f"| {name} | {seen} | {means[0]:.4f} | {means[1]:.4f} | {means[1] - means[0]:+.4f} |")


if __name__ == "__main__":
    main()
