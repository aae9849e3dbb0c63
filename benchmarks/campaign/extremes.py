"""Graphs and weights at the edge, each in a process of its own, so that a crash is a line: python extremes.py NAME

Prints `held: …` for each thing that held, and anything else for what did not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gamma_kg import Gamma, KnowledgeGraph


def check(holds: bool, what: str) -> None:
    print(f"{'held: ' if holds else ''}{what}")


def refuses(act: Callable[[], Any], what: str) -> None:
    """Expects a `GammaError` or a ValueError with words."""
    from gamma_kg.errors import GammaError

    try:
        act()
        print(f"{what}: was taken")
    except (GammaError, ValueError) as error:
        check(bool(str(error).strip()), f"{what}: {str(error).splitlines()[0][:80]}")


def small() -> Gamma:
    from gamma_kg import Gamma
    from gamma_kg.nn.config import GammaConfig

    return Gamma.from_config(GammaConfig(dim=16, num_layers=2))


def graph(triples: Any, entities: int, relations: int, **options: Any) -> KnowledgeGraph:
    import numpy as np

    from gamma_kg import KnowledgeGraph

    names = [f"e{i}" for i in range(entities)], [f"r{i}" for i in range(relations)]
    return KnowledgeGraph(np.asarray(triples, dtype=np.int64).reshape(-1, 3), *names, **options)


def ids_out_of_range() -> None:
    import torch

    from gamma_kg.graph.edges import Edges
    from gamma_kg.kernels import propagate

    for triples in ([[0, 0, 9]], [[-1, 0, 1]], [[0, 5, 1]], [[2**40, 0, 1]], [[0, -(2**60), 1]]):
        refuses(lambda triples=triples: graph(triples, 3, 2), f"triples {triples}")
    kg, gamma = graph([[0, 0, 1], [1, 1, 2]], 3, 2), small()
    for heads, relations in (([9], [0]), ([-1], [0]), ([0], [99]), ([0], [-1]), ([2**40], [0])):
        refuses(lambda h=heads, r=relations: gamma.scores(kg, h, r), f"scores of {heads} {relations}")
    good = kg.edges
    parts = (good.node_ptr, good.group_type, good.group_ptr, good.neighbour, good.inverse)
    for number, name in enumerate(("node_ptr", "group_type", "group_ptr", "neighbour")):
        for shift in (50, -50):
            changed = [part + shift if i == number else part for i, part in enumerate(parts)]
            bad = Edges(good.num_nodes, good.num_types, *changed)
            x, relation = torch.randn(1, good.num_nodes, 8), torch.randn(1, good.num_types, 8)
            refuses(lambda bad=bad, x=x, r=relation: propagate(bad, x, r, "real"), f"edges with {name} {shift:+}")


def empty_graphs() -> None:
    import torch

    from gamma_kg.errors import GammaError

    gamma = small()
    for triples, entities, relations in (([], 3, 1), ([], 1, 1), ([[0, 0, 0]], 1, 1), ([[0, 0, 1]], 5, 3)):
        kg = graph(triples, entities, relations)
        for relation in range(2 * relations):
            scores = gamma.scores(kg, [0], [relation])
            check(
                scores.shape == (1, entities) and bool(torch.isfinite(scores).all()), f"{triples} relation {relation}"
            )
    try:
        check(graph([], 0, 0).num_entities == 0, "a graph of nothing is a graph")
    except GammaError:
        check(True, "a graph of nothing is refused")


def hub() -> None:
    """A hub with a million edges: scores are finite, the same with one and two threads, and it is answered."""
    import numpy as np
    import torch

    count = 1_000_000
    leaves = np.arange(1, count + 1)
    kg = graph(np.stack([np.zeros(count, dtype=np.int64), leaves % 3, leaves], axis=1), count + 2, 4)
    gamma, found = small(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(gamma.scores(kg, [0, 5], [0, 1]))
    check(bool(torch.isfinite(found[0]).all()), "scores are finite")
    check(torch.equal(*found), "the same bits with one and two threads")
    answers = gamma.predict(kg, head="e0", relation="r1", top_k=3, local="off", rules=False)
    check(len(answers) == 3, "whole: three answers")
    answers = gamma.predict(kg, head="e7", relation="r1", top_k=3, local=20_000, rules=False)
    check(len(answers) == 3 and all(a.score == a.score for a in answers), "beside the hub, local: three answers")


def parallel_edges() -> None:
    """One fact 100,000 times, kept and dropped; and 2,000 relations between two entities."""
    import torch

    once = graph([[0, 0, 1], [1, 1, 2]], 3, 2)
    many = graph([[0, 0, 1]] * 100_000 + [[1, 1, 2]], 3, 2, keep_duplicates=True)
    dropped = graph([[0, 0, 1]] * 100_000 + [[1, 1, 2]], 3, 2)
    gamma = small()
    check(bool(torch.isfinite(gamma.scores(many, [0], [0])).all()), "100,000 copies: finite")
    check(torch.equal(gamma.scores(dropped, [0], [0]), gamma.scores(once, [0], [0])), "copies count once")
    wide = graph([[0, r, 1] for r in range(2_000)], 2, 2_000)
    check(bool(torch.isfinite(gamma.scores(wide, [0], [0])).all()), "2,000 relations between two entities: finite")


def bad_weights() -> None:
    """NaN and infinity in any weight: an error with words, and never a NaN ranked first."""
    import torch

    from gamma_kg.demo import demo_graph
    from gamma_kg.errors import NonFiniteScoreError

    kg = demo_graph()
    names = [name for name, _ in small().model.named_parameters()]
    for name in names:
        for bad in (float("nan"), float("inf"), -float("inf")):
            gamma = small()
            with torch.no_grad():
                dict(gamma.model.named_parameters())[name].view(-1)[0] = bad
            try:
                scores = gamma.scores(kg, [0], [0])
                first = gamma.predict(kg, head=kg.entities[0], relation=kg.relations[0], top_k=1)
                check(
                    bool(torch.isfinite(scores).all()) and first[0].score == first[0].score, f"{bad} in {name}: finite"
                )
            except NonFiniteScoreError:
                check(True, f"{bad} in {name}: refused")


EXTREMES: dict[str, Callable[[], None]] = {
    "ids out of range": ids_out_of_range,
    "empty graphs": empty_graphs,
    "a hub with 10^6 edges": hub,
    "10^5 parallel edges": parallel_edges,
    "NaN and infinite weights": bad_weights,
}

if __name__ == "__main__":
    EXTREMES[sys.argv[1]]()
