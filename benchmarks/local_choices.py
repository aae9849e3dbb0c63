"""What decides the quality of local answers, measured on validation triples (filtered by the graph and valid only).

    python benchmarks/local_choices.py --limit 60 fb15k237 codex-m nell23k

Mean reciprocal rank (ties shared) of the same queries from the whole graph, from the background alone, and from
neighbourhoods: their size in triples, the chance of the walk to go back, frequent answers of the relation as further
starts of the walk (a fifth of its weight), edges kept that lead out of the neighbourhood, the mean of two sizes, and
what is taken off the scores outside. With --only a part of these, by name; --sizes adds further sizes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.graph.known import KnownAnswers
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.growth import grow
from gamma_kg.predicting.background import FAR, BackgroundCache, frequent_answers
from gamma_kg.predicting.inference import RelationCache, relation_states
from gamma_kg.predicting.local import score_neighbourhoods

MEMORY = 1 << 30
OFF = (0.0, 1.0, 2.0, 4.0, 100.0)
FREQUENT = 16


@dataclass(frozen=True)
class Growth:
    """How a neighbourhood grows: `frequent` is the share of the walk's weight that frequent answers of the relation
    get, `rim` how many facts may lead out of it, one of each entity and relation."""

    triples: int
    restart: float = 0.15
    frequent: float = 0.0
    rim: int = 0


GROWTHS = {
    "4,000": Growth(4_000),
    "8,000": Growth(8_000),
    "16,000": Growth(16_000),
    "8,000, restart .4": Growth(8_000, restart=0.4),
    "8,000, frequent answers": Growth(8_000, frequent=0.2),
    "8,000, rim edges": Growth(8_000, rim=8_000),
    "6,000, 2,000 rim edges": Growth(6_000, rim=2_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--only", action="append", help="a choice by name; may be repeated")
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="further sizes, in triples")
    parser.add_argument("--model")
    parser.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    gamma = Gamma.from_pretrained(given.model)
    growths = GROWTHS | {f"{size:,}": Growth(size) for size in given.sizes}
    if given.only is not None:
        growths = {
            name: growth for name, growth in growths.items() if name in given.only or growth.triples in given.sizes
        }
    has_whole = given.only is None or "whole graph" in given.only
    for name in given.sets:
        print(name)
        for choice, mrr in measure(gamma, name, growths, has_whole, given.limit, given.data_dir).items():
            print(f"  {choice:<40} {mrr:.4f}", flush=True)


@torch.no_grad()
def measure(
    gamma: Gamma, name: str, growths: dict[str, Growth], has_whole: bool, limit: int, data_dir: Path | None
) -> dict[str, float]:
    """MRR per choice."""
    split = load_benchmark(name, data_dir).split("valid")
    kg = KnowledgeGraph(split.graph, split.entities, split.relations, keep_duplicates=True)
    plan = QueryPlan.build(split, limit=limit)
    filters = KnownAnswers.build(torch.from_numpy(split.graph).numpy(), split.num_entities, split.num_relations)
    valid = KnownAnswers.build(split.queries, split.num_entities, split.num_relations)
    cache, backgrounds = RelationCache(), BackgroundCache()
    found: dict[str, list[float]] = defaultdict(list)
    for q in range(len(plan)):
        query = plan.source[q : q + 1], plan.relation[q : q + 1]
        answer, relation = int(plan.answer[q]), int(query[1][0])
        known = torch.from_numpy(filters.of(*query)[1]), torch.from_numpy(valid.of(*query)[1])
        without = torch.cat(known).unique()
        without = without[without != answer]

        def note(choice: str, score_N: Tensor, answer: int = answer, without: Tensor = without) -> None:
            found[choice].append(reciprocal_rank(score_N, answer, without))

        source_B, relation_B = (torch.from_numpy(ids) for ids in query)
        if has_whole:
            note("whole graph", gamma.scores(kg, source_B, relation_B, local="off")[0])
        outside = backgrounds.of(gamma.model, kg, relation, cache, MEMORY).score_M + FAR
        note("background alone", outside)
        relations = relation_states(gamma.model, kg, relation_B, cache, MEMORY)
        rows = {}
        for choice, growth in growths.items():
            walk = Starts.single(source_B)
            if growth.frequent:
                walk = with_frequent(kg, int(source_B[0]), relation, growth.frequent)
            hoods = grow(kg.edges, walk, growth.triples, growth.restart, growth.rim)
            inside = hoods.entity_N[hoods.is_inside_N]
            score = score_neighbourhoods(gamma.model, hoods, relations, Starts.single(source_B), relation_B).score_BC
            for off in OFF if choice == "8,000" else (0.0, 2.0):
                rows[choice, off] = (outside - off).index_copy(0, inside, score)
                note(f"{choice}; less {off:g} outside", rows[choice, off])
        for other in ("8,000", "16,000"):
            if ("4,000", 0) in rows and (other, 0) in rows:
                note(f"mean of 4,000 and {other}; less 0 outside", (rows["4,000", 0] + rows[other, 0]) / 2)
    return {choice: sum(ranks) / len(ranks) for choice, ranks in found.items()}


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


if __name__ == "__main__":
    main()
