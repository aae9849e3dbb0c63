"""What decides the quality of local answers, measured on validation triples (filtered by the graph and valid only).

    python benchmarks/local_choices.py --limit 100 --out results/choices fb15k237 codex-m nell23k

Mean reciprocal rank (ties shared) of the same queries from the whole graph and from neighbourhoods that differ in one
thing each from those of `local`: their size, the chance of the walk to go back, frequent answers of the relation as
further starts of the walk (a fifth of its weight), what is taken off the scores outside and, for the share of its edges
that an entity has lost, inside; and the mean of two sizes. What is done stays in --out, a file for each set, so that a
long run can be cut into pieces; without sets the table of all that is there is printed.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.evaluation.split_graph import graph_of
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.graph.neighbourhoods import RESTART
from gamma_kg.graph.starts import Starts
from gamma_kg.io.atomic import write_text
from gamma_kg.kernels.growth import grow
from gamma_kg.predicting.background import FAR, BackgroundCache, frequent_answers
from gamma_kg.predicting.inference import RelationCache, relation_states
from gamma_kg.predicting.local import score_neighbourhoods
from gamma_kg.predicting.switch import budget_of

MEMORY = 1 << 30
FREQUENT = 16


class Growth(NamedTuple):
    """How a neighbourhood grows: `size` is in budgets of `local`, `frequent` the share of the walk's weight that
    frequent answers of the relation get."""

    size: float = 1.0
    restart: float = RESTART
    frequent: float = 0.0


class Choice(NamedTuple):
    """Scores from one neighbourhood: what is taken off outside, and inside for all edges lost."""

    growth: Growth = Growth()
    far: float = FAR
    lost: float = 0.0


AS_IT_IS, HALF, MEAN, WHOLE = "as it is", "half the size", "mean of half and as it is", "whole graph"
CHOICES = {
    AS_IT_IS: Choice(),
    HALF: Choice(Growth(size=0.5)),
    "1.5 × the size": Choice(Growth(size=1.5)),
    "0 off outside": Choice(far=0.0),
    "4 off outside": Choice(far=4.0),
    "nothing outside": Choice(far=100.0),
    "1 off for lost edges": Choice(lost=1.0),
    "restart .4": Choice(Growth(restart=0.4)),
    "frequent answers": Choice(Growth(frequent=0.2)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--only", action="append", choices=CHOICES, help="one choice; may be repeated")
    parser.add_argument("--model")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    choices = {name: choice for name, choice in CHOICES.items() if given.only is None or name in given.only}
    gamma = Gamma.from_pretrained(given.model) if given.sets else None
    for name in given.sets:
        path = given.out / f"{name}.json"
        if gamma is None or path.is_file():
            continue
        print(f"ranking {name}", flush=True)
        given.out.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(measure(gamma, name, choices, given.limit, given.data_dir)) + "\n")
    show(given.out)


@torch.no_grad()
def measure(
    gamma: Gamma, name: str, choices: dict[str, Choice], limit: int, data_dir: Path | None
) -> dict[str, list[float]]:
    """Reciprocal ranks of all queries, for each choice."""
    split = load_benchmark(name, data_dir).split("valid")
    kg = graph_of(split)
    plan = QueryPlan.build(split, limit=limit)
    filters = [
        KnownAnswers.build(facts, split.num_entities, split.num_relations) for facts in (split.graph, split.queries)
    ]
    degree, budget = degrees(kg.edges), budget_of(kg.num_entities, kg.num_triples)
    cache, backgrounds = RelationCache(), BackgroundCache()
    found: dict[str, list[float]] = defaultdict(list)
    for q in np.argsort(plan.relation, kind="stable"):  # those of one relation share its states and its background
        source, relation, answer = plan.source[q : q + 1], plan.relation[q : q + 1], int(plan.answer[q])
        known = torch.cat([torch.from_numpy(filter_.of(source, relation)[1]) for filter_ in filters]).unique()
        known = known[known != answer]
        source_B, relation_B = torch.from_numpy(source), torch.from_numpy(relation)
        relations = relation_states(gamma.model, kg, relation_B, cache, MEMORY)
        outside = backgrounds.of(gamma.model, kg, int(relation[0]), cache, MEMORY).score_M + FAR
        near = {}
        for growth in {choice.growth for choice in choices.values()}:
            walk = Starts.single(source_B)
            if growth.frequent:
                walk = with_frequent(kg, int(source_B[0]), int(relation[0]), growth.frequent)
            hood = grow(kg.edges, walk, round(growth.size * budget), growth.restart)
            score = score_neighbourhoods(gamma.model, hood, relations, Starts.single(source_B), relation_B).score_BC
            kept = degrees(hood.edges) / degree[hood.entity_N].clamp(min=1)
            near[growth] = hood.entity_N, score, 1 - kept
        rows = {WHOLE: gamma.scores(kg, source_B, relation_B, local="off")[0]}
        for which, choice in choices.items():
            entity, score, lost = near[choice.growth]
            rows[which] = (outside - choice.far).index_copy(0, entity, score - choice.lost * lost)
        if AS_IT_IS in rows and HALF in rows:
            rows[MEAN] = (rows[AS_IT_IS] + rows[HALF]) / 2
        for which, score_N in rows.items():
            found[which].append(reciprocal_rank(score_N, answer, known))
    return found


def degrees(edges: Edges) -> Tensor:
    """How many edges each node has."""
    return edges.group_ptr[edges.node_ptr].diff()


def with_frequent(kg: KnowledgeGraph, source: int, relation: int, share: float) -> Starts:
    """The source, and the relation's most frequent answers with a share of the weight."""
    others = frequent_answers(kg.edges, int(kg.edges.inverse[relation]))[:FREQUENT]
    others = others[others != source]
    weight = torch.full((len(others),), share / max(len(others), 1))
    node = torch.cat((torch.tensor([source]), others))
    every = torch.cat((torch.tensor([1 - share if len(others) else 1.0]), weight))
    return Starts.of_weights(torch.zeros_like(node), node, every, 1)


def reciprocal_rank(score_N: Tensor, answer: int, without: Tensor) -> float:
    """1 / rank, with ties shared."""
    rivals = score_N.index_fill(0, without, -torch.inf)
    above, tied = int((rivals > score_N[answer]).sum()), int((rivals == score_N[answer]).sum()) - 1
    return 1 / (1 + above + tied / 2)


def show(out: Path) -> None:
    """The table of all sets: the whole graph's figure, and how far each choice is from it, with its standard error."""
    sets = {path.stem: json.loads(path.read_text()) for path in sorted(out.glob("*.json"))}
    names = [name for name in [*CHOICES, MEAN] if any(name in ranks for ranks in sets.values())]
    print(f"| | queries | {WHOLE} | {' | '.join(names)} |\n|---|---|---{'|---' * len(names)}|")
    means = defaultdict(list)
    for set_, ranks in sets.items():
        whole = np.array(ranks[WHOLE])
        cells = []
        for name in names:
            if name not in ranks:
                cells.append("")
                continue
            gain = np.array(ranks[name]) - whole
            means[name].append(gain.mean())
            cells.append(f"{gain.mean():+.4f} ± {gain.std() / len(gain) ** 0.5:.3f}")
        print(f"| {set_} | {len(whole)} | {whole.mean():.4f} | {' | '.join(cells)} |")
    print(f"| mean | | | {' | '.join(f'{np.mean(means[name]):+.4f}' for name in names)} |")
    print(f"| worst | | | {' | '.join(f'{np.min(means[name]):+.4f}' for name in names)} |")


if __name__ == "__main__":
    main()
