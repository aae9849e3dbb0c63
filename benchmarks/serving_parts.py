"""Where the time of a question goes, alone and in a batch: what a batch of `gamma serve` can save, and what it can't.

    OMP_NUM_THREADS=1 python benchmarks/serving_parts.py FOLDER/train.txt

Milliseconds of processor time a question, by one thread, without HTTP: growing the neighbourhood, layers, scores,
and the rest (ids, rules, ranking, names). The first three are computed for each question by itself, so that with two
cores no batch can answer more than 2 / (their sum) questions a second, whatever the rest costs.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.kernels.native.backend import NativeBackend
from gamma_kg.nn.encoder import Encoder
from gamma_kg.predicting import local
from gamma_kg.predicting.answer_options import AnswerOptions

PARTS = {"growth": (local, "grow"), "layers": (Encoder, "forward_union"), "scores": (NativeBackend, "union_score")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("graph")
    parser.add_argument("--questions", type=int, default=480)
    parser.add_argument("--relations", type=int, default=30, help="Relations that they ask about.")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    given = parser.parse_args()
    kg = KnowledgeGraph.from_file(given.graph, progress=False)
    gamma, generator = Gamma.from_pretrained(), random.Random(0)
    how = AnswerOptions(top_k=10)
    if gamma.triples(kg, how.local) is None:
        raise SystemExit(f"{given.graph} is answered as a whole: only local answers have these parts")
    relations = generator.sample(list(kg.relations), min(given.relations, kg.num_relations))
    asked = [
        _query(kg.entities[generator.randrange(kg.num_entities)], generator.choice(relations), generator)
        for _ in range(given.questions)
    ]
    list(gamma.predict_many(kg, asked, how))  # what is made once for a relation is not what is measured
    spent = dict.fromkeys(PARTS, 0.0)
    for name, (owner, function) in PARTS.items():
        setattr(owner, function, _timed(getattr(owner, function), spent, name))
    print("| in a batch | growth | layers | scores | rest | all | two cores at most |")
    print("|---|---|---|---|---|---|---|")
    for size in given.batches:
        spent.update(dict.fromkeys(PARTS, 0.0))
        begun = time.process_time()
        for first in range(0, len(asked), size):
            list(gamma.predict_many(kg, asked[first : first + size], how))
        whole = 1000 * (time.process_time() - begun) / len(asked)
        parts = [1000 * spent[name] / len(asked) for name in PARTS]
        cells = [f"{ms:.2f}" for ms in (*parts, whole - sum(parts), whole)]
        print(f"| {size} | {' | '.join(cells)} | {2000 / sum(parts):.0f}/s |", flush=True)


def _query(entity: str, relation: str, generator: random.Random) -> tuple[str | None, str, str | None]:
    return (entity, relation, None) if generator.random() < 0.5 else (None, relation, entity)


def _timed(function: Callable[..., Any], spent: dict[str, float], name: str) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        begun = time.process_time()
        try:
            return function(*args, **options)
        finally:
            spent[name] += time.process_time() - begun

    return run


if __name__ == "__main__":
    main()
