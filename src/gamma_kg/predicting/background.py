"""Scores of all entities for a relation without any source: what is left to say of entities far from a query's start.

One pass over the whole graph per relation, kept. Where even one pass is too much, a sample of the graph stands for it:
the neighbourhood of the relation's most frequent answers, the more of it the more frequent they are; all others get the
median.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.growth import grow
from gamma_kg.nn.local_answers import Background
from gamma_kg.nn.model import GammaModel, RelationStates
from gamma_kg.predicting.inference import require_finite
from gamma_kg.predicting.kept_per_graph import KeptPerGraph
from gamma_kg.predicting.relation_cache import RelationCache, relation_states

# Beyond so many facts the background comes from a sample.
WHOLE_TRIPLES = 10**7
# What lies outside of a neighbourhood is less likely an answer than what lies inside and scores the same: so much is
# taken off (docs/local.md has what other numbers give).
FAR = 2.0
SAMPLE_TRIPLES = 200_000
# Starts of the sample: frequent answers (of those that some blocks of edges show). Few, and weighted by how often they
# are answers: what decides is the order of the first ones, and their scores are right where their surroundings are
# there (docs/local.md). A relation of which nothing is seen starts from entities at even distances.
FREQUENT, EVEN = 64, 256
LOOKED_AT, BLOCKS = 1 << 22, 256
CACHED_BYTES = 1 << 29
# One query without a start.
NOBODY = Starts(torch.empty(0, dtype=torch.long), None, torch.zeros(2, dtype=torch.long))


class BackgroundCache:
    """Backgrounds of a model per (graph, relation), bounded in bytes."""

    def __init__(self) -> None:
        self._graphs: KeptPerGraph[tuple[int, bool], Background] = KeptPerGraph()

    def of(
        self,
        model: GammaModel,
        kg: KnowledgeGraph,
        relation: int,
        cache: RelationCache,
        memory: int,
        *,
        on_asked: bool = False,
    ) -> Background:
        """The background of a relation id (inverses count on from num_relations)."""
        return self.of_all(model, kg, [relation], cache, memory, on_asked=on_asked)[relation]

    def of_all(
        self,
        model: GammaModel,
        kg: KnowledgeGraph,
        relations: Iterable[int],
        cache: RelationCache,
        memory: int,
        *,
        on_asked: bool = False,
    ) -> dict[int, Background]:
        """Those of the relations of a batch: looking through the weights takes longer than finding one."""
        with self._graphs.of(model, kg) as kept:
            found: dict[int, Background] = {}
            for relation in relations:
                key = relation, on_asked
                if key not in kept:
                    kept[key] = make_background(model, kg, relation, cache, memory, on_asked=on_asked)
                    while len(kept) > 1 and sum(background.num_bytes for background in kept.values()) > CACHED_BYTES:
                        kept.popitem(last=False)
                kept.move_to_end(key)
                found[relation] = kept[key]
            return found


@torch.no_grad()
def make_background(
    model: GammaModel,
    kg: KnowledgeGraph,
    relation: int,
    cache: RelationCache,
    memory: int,
    *,
    on_asked: bool = False,
) -> Background:
    """One pass with an empty start, over the graph or over a sample of it."""
    device = model.score.out.weight.device
    relation_B = torch.tensor([relation], device=device)
    relations = relation_states(model, kg, relation_B, cache, memory, on_asked=on_asked)
    if kg.num_triples <= WHOLE_TRIPLES:
        edges = backend_of(device).prepare(kg.edges)
        scores = model.score_entities(edges, relations, edges.renamed(NOBODY), relation_B)
        require_finite(kg, scores.score_BC, NOBODY, relation_B)
        weight_NK = None if scores.weight_BCK is None else edges.by_node(scores.weight_BCK)[0].cpu()
        return Background(kg.num_entities, None, edges.by_node(scores.score_BC)[0].cpu() - FAR, weight_NK)
    return _from_sample(model, kg, relations, relation_B, SAMPLE_TRIPLES)


@torch.no_grad()
def sampled_background(
    model: GammaModel, kg: KnowledgeGraph, relation: int, cache: RelationCache, memory: int, triples: int
) -> Background:
    """The background from a sample of so many facts, whatever the size of the graph."""
    relation_B = torch.tensor([relation], device=model.score.out.weight.device)
    relations = relation_states(model, kg, relation_B, cache, memory)
    return _from_sample(model, kg, relations, relation_B, triples)


def _from_sample(
    model: GammaModel, kg: KnowledgeGraph, relations: RelationStates, relation_B: Tensor, triples: int
) -> Background:
    device = relation_B.device
    inverse = int(kg.edges.inverse[relation_B.cpu()])
    start, times = frequent_answers(kg.edges, inverse)
    if not len(start):
        start = even_entities(kg.num_entities)
        times = torch.ones(len(start))
    starts = Starts.of_weights(torch.zeros_like(start), start, times / times.sum(), 1)
    sample = grow(kg.edges, starts, triples)
    scores = model.score_entities(sample.edges.to(device), relations, NOBODY.to(device), relation_B)
    entity_M, order = sample.entity_N.sort()
    score_M = scores.score_BC[0].cpu()[order] - FAR
    weight_MK = None if scores.weight_BCK is None else scores.weight_BCK[0].cpu()[order]
    return Background(kg.num_entities, entity_M, score_M, weight_MK, float(score_M.median()))


def frequent_answers(edges: Edges, inverse: int) -> tuple[Tensor, Tensor]:
    """The entities with most edges of the type `inverse`, as far as blocks of groups at even distances show them, most
    first, and how many they have."""
    block = min(LOOKED_AT // BLOCKS, edges.num_groups)
    last = edges.num_groups - block
    first = torch.linspace(0, last, BLOCKS, dtype=torch.double).long().unique() if last > 0 else torch.tensor([0])
    found = []
    for start in first.tolist():
        found.append(start + (edges.group_type[start : start + block] == inverse).nonzero()[:, 0])
    group = torch.cat(found).unique()
    size, order = (edges.group_ptr[group + 1] - edges.group_ptr[group]).sort(descending=True, stable=True)
    owner: Tensor = torch.searchsorted(edges.node_ptr, group[order[:FREQUENT]], right=True) - 1
    return owner, size[:FREQUENT].double()


def even_entities(num_entities: int) -> Tensor:
    """Entities at even distances in the order of their ids."""
    entity: Tensor = torch.linspace(0, max(num_entities - 1, 0), EVEN, dtype=torch.double).long().unique()
    return entity
