"""What decides the quality of local answers, measured on validation triples (filtered by the graph and valid only).

    python benchmarks/local_choices.py --limit 100 --out results/choices fb15k237 codex-m nell23k

Mean reciprocal rank (ties shared) of the same queries from the whole graph and from neighbourhoods that differ in one
thing each from those of `local`: the rule of their size (by the square of density, by density, one for all) and that
size halved and more; the chance of the walk to go back; frequent answers of the relation as further starts of the
walk (a fifth of its weight), in the same room or with a quarter more; what is taken off the scores outside and, for the
share of its edges that an entity has lost, inside; the mean of two sizes, and that of a neighbourhood and a near one
of a quarter, which `local` takes in sparse graphs; and scores outside from a sample of the graph. What is done stays
in --out, a file for each set, so that a long run can be cut into pieces; without sets the table of all that is there is
printed.
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
from gamma_kg.nn.local_answers import WIDE_SHARE
from gamma_kg.predicting.background import FAR, BackgroundCache, frequent_answers, sampled_background
from gamma_kg.predicting.local import score_neighbourhoods
from gamma_kg.predicting.relation_cache import RelationCache, relation_states
from gamma_kg.predicting.switch import LEAST_TRIPLES, MOST_TRIPLES, TRIPLES_PER_SQUARE

MEMORY = 1 << 30
FREQUENT = 16


class Rule(NamedTuple):
    """Triples by the average degree: factor · degree ** power within the bounds of `local`, times `size`."""

    factor: float = TRIPLES_PER_SQUARE
    power: int = 2
    size: float = 1.0

    def triples(self, degree: float) -> int:
        wanted = int(self.factor * degree**self.power)
        return round(self.size * min(max(wanted, LEAST_TRIPLES), MOST_TRIPLES))


class Growth(NamedTuple):
    """How a neighbourhood grows; `frequent` is the share of the walk's weight that frequent answers get."""

    triples: int
    restart: float = RESTART
    frequent: float = 0.0


class Choice(NamedTuple):
    """Scores from one neighbourhood: how it grows, what is taken off outside, and inside for all edges lost.

    `sample`: the scores outside come from a sample with this share of the graph's facts.
    """

    rule: Rule = Rule()
    restart: float = RESTART
    frequent: float = 0.0
    far: float = FAR
    lost: float = 0.0
    sample: float | None = None

    def growth(self, degree: float) -> Growth:
        return Growth(self.rule.triples(degree), self.restart, self.frequent)


AS_IT_IS, HALF, MEAN, WHOLE = "as it is", "half the size", "mean of half and as it is", "whole graph"
QUARTER, NEAR = "a quarter", "with a near one"
CHOICES = {
    AS_IT_IS: Choice(),
    "400 triples per degree": Choice(Rule(400, 1)),
    "8,000 triples": Choice(Rule(8_000, 0)),
    "22,000 triples": Choice(Rule(22_000, 0)),
    HALF: Choice(Rule(size=0.5)),
    QUARTER: Choice(Rule(size=0.25)),
    "1.5 × the size": Choice(Rule(size=1.5)),
    "restart .05": Choice(restart=0.05),
    "restart .4": Choice(restart=0.4),
    "frequent answers": Choice(frequent=0.2),
    "frequent answers, 1.25 × the size": Choice(Rule(size=1.25), frequent=0.2),
    "0 off outside": Choice(far=0.0),
    "1 off": Choice(far=1.0),
    "3 off": Choice(far=3.0),
    "4 off": Choice(far=4.0),
    "nothing outside": Choice(far=100.0),
    "1 off for lost edges": Choice(lost=1.0),
    "outside from a sample of 5 %": Choice(sample=0.05),
    "of 1 %": Choice(sample=0.01),
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
    degree = degrees(kg.edges)
    growths = {name: choice.growth(2 * kg.num_triples / kg.num_entities) for name, choice in choices.items()}
    cache, backgrounds = RelationCache(), BackgroundCache()
    samples = {choice.sample for choice in choices.values() if choice.sample is not None}
    sampled: dict[tuple[int, float | None], Tensor] = {}
    everyone = torch.arange(kg.num_entities)
    found: dict[str, list[float]] = defaultdict(list)
    for q in np.argsort(plan.relation, kind="stable"):  # those of one relation share its states and its background
        source, relation, answer = plan.source[q : q + 1], plan.relation[q : q + 1], int(plan.answer[q])
        known = torch.cat([torch.from_numpy(filter_.of(source, relation)[1]) for filter_ in filters]).unique()
        known = known[known != answer]
        source_B, relation_B = torch.from_numpy(source), torch.from_numpy(relation)
        relations = relation_states(gamma.model, kg, relation_B, cache, MEMORY)
        outside = {None: backgrounds.of(gamma.model, kg, int(relation[0]), cache, MEMORY).score_M + FAR}
        for share in samples:
            key = int(relation[0]), share
            if key not in sampled:
                facts = round(share * kg.num_triples)
                found_there = sampled_background(gamma.model, kg, key[0], cache, MEMORY, facts)
                sampled[key] = found_there.at(everyone) + FAR
            outside[share] = sampled[key]
        near = {}
        for growth in set(growths.values()):
            walk = Starts.single(source_B)
            if growth.frequent:
                walk = with_frequent(kg, int(source_B[0]), int(relation[0]), growth.frequent)
            hood = grow(kg.edges, walk, growth.triples, growth.restart)
            score = score_neighbourhoods(gamma.model, hood, relations, Starts.single(source_B), relation_B).score_BC
            kept = degrees(hood.edges) / degree[hood.entity_N].clamp(min=1)
            near[growth] = hood.entity_N, score, 1 - kept
        rows = {WHOLE: gamma.scores(kg, source_B, relation_B, local="off")[0]}
        for which, choice in choices.items():
            entity, score, lost = near[growths[which]]
            rows[which] = (outside[choice.sample] - choice.far).index_copy(0, entity, score - choice.lost * lost)
        if AS_IT_IS in rows and HALF in rows:
            rows[MEAN] = (rows[AS_IT_IS] + rows[HALF]) / 2
        if AS_IT_IS in rows and QUARTER in rows:
            rows[NEAR] = WIDE_SHARE * rows[AS_IT_IS] + (1 - WIDE_SHARE) * rows[QUARTER]
        for which, score_N in rows.items():
            found[which].append(reciprocal_rank(score_N, answer, known))
    return found


def degrees(edges: Edges) -> Tensor:
    """How many edges each node has."""
    return edges.group_ptr[edges.node_ptr].diff()


def with_frequent(kg: KnowledgeGraph, source: int, relation: int, share: float) -> Starts:
    """The source, and the relation's most frequent answers with a share of the weight."""
    others = frequent_answers(kg.edges, int(kg.edges.inverse[relation]))[0][:FREQUENT]
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
    names = [name for name in [*CHOICES, MEAN, NEAR] if any(name in ranks for ranks in sets.values())]
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
