"""Ranks split up: by the pattern of the relation, or by which halves of the triple the graph has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.analysis.halflinks import STRATA, halflink_strata
from gamma_kg.analysis.patterns import find_patterns
from gamma_kg.data.benchmark import Benchmark, Split
from gamma_kg.evaluation.metrics import rank_metrics
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.evaluation.ranking import RivalCounts
from gamma_kg.graph.inverse import direct_of

# Groups of fewer triples say little; the paper leaves them out as well.
SMALLEST_PATTERN_GROUP = 50

Masks = dict[str, NDArray[np.bool_]]


def by_pattern(benchmark: Benchmark, split: Split, plan: QueryPlan) -> Masks:
    """Which ranked answers belong to a relation with each pattern, found in all files of the set; not exclusive."""
    parts, entities, relations = benchmark.all_triples()
    patterns = find_patterns(np.concatenate(list(parts.values())), len(entities), len(relations))
    of_split = np.array([relations.id(name) for name in split.relations], dtype=np.int64)
    asked = of_split[direct_of(plan.relation, split.num_relations)]
    return {
        name: shows[asked]
        for name, shows in patterns.shows.items()
        if len(np.unique(plan.triple[shows[asked]])) >= SMALLEST_PATTERN_GROUP
    }


def by_halflink(benchmark: Benchmark, split: Split, plan: QueryPlan) -> Masks:
    """Which ranked answers belong to each of the four half-link strata; every answer to exactly one."""
    stratum = halflink_strata(
        split.graph, split.num_entities, split.num_relations, plan.source, plan.relation, plan.answer
    )
    return {name: stratum == index for index, name in enumerate(STRATA)}


STRATIFIERS: dict[str, Callable[[Benchmark, Split, QueryPlan], Masks]] = {
    "pattern": by_pattern,
    "halflink": by_halflink,
}


def stratify(by: str, benchmark: Benchmark, split: Split, plan: QueryPlan, counts: RivalCounts) -> dict[str, Any]:
    """Metrics per stratum, with the number of triples and of ranked answers in it."""
    strata = {}
    for name, mask in STRATIFIERS[by](benchmark, split, plan).items():
        strata[name] = {
            "triples": len(np.unique(plan.triple[mask])),
            "queries": int(mask.sum()),
            **rank_metrics(counts.published_rank()[mask]),
            "fair_mrr": rank_metrics(counts.fair_rank()[mask])["mrr"],
        }
    return strata
