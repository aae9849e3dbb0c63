"""What a model says of the facts (head, r, tail) for many relations r and the same two entities, asked from both ends.

On a large graph both ends are starts of one neighbourhood (in sparse graphs of a near one beside it), and all queries
are asked in it. So the answer never lies outside, and no relation needs a background: two passes over the whole graph
for each relation would be minutes for what a person asks with a click.

A relations that are asked about, Q = 2A queries, B of them at once, K branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import inverse_of
from gamma_kg.graph.neighbourhoods import Neighbourhoods
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.growth import grow
from gamma_kg.machine.memory import budget
from gamma_kg.nn.local_answers import WIDE_SHARE
from gamma_kg.nn.model import GammaModel
from gamma_kg.predicting.inference import evaluating, require_finite
from gamma_kg.predicting.local import batch_size
from gamma_kg.predicting.relation_cache import RelationCache, relation_states
from gamma_kg.predicting.score_batch import ScoreBatch
from gamma_kg.predicting.switch import neighbourhood_sizes

ScoreQueries = Callable[[KnowledgeGraph, Tensor, Tensor], Iterator[ScoreBatch]]


class PairScores(NamedTuple):
    """What is said of (head, r, tail) for each of some relations: the mean of what is said from the two ends."""

    score_A: Tensor
    weight_AK: Tensor | None  # of the branches
    local: int | None  # as in `Prediction`
    is_sampled: bool = False

    @classmethod
    def of_nothing(cls) -> PairScores:
        return cls(torch.empty(0), None, None)


def queries_between(kg: KnowledgeGraph, head: int, relation_A: Tensor, tail: int) -> tuple[Tensor, Tensor, Tensor]:
    """(source, relation, answer) of the queries for each relation from the head, then for each from the tail."""
    ends = torch.tensor([head, tail])
    relation_Q = torch.cat((relation_A, inverse_of(relation_A, kg.num_relations)))
    return ends.repeat_interleave(len(relation_A)), relation_Q, ends.flip(0).repeat_interleave(len(relation_A))


def mean_of_ends(score_Q: Tensor, weight_QK: Tensor | None, local: int | None, is_sampled: bool = False) -> PairScores:
    """From what is said of the answers of `queries_between`."""
    weight_AK = None if weight_QK is None else weight_QK.view(2, -1, weight_QK.shape[1]).mean(0)
    return PairScores(score_Q.view(2, -1).mean(0), weight_AK, local, is_sampled)


def pair_by_batches(kg: KnowledgeGraph, head: int, relation_A: Tensor, tail: int, score: ScoreQueries) -> PairScores:
    """From the answers to each query, as `predict` has them."""
    source_Q, relation_Q, answer_Q = queries_between(kg, head, relation_A, tail)
    score_Q, weights = torch.zeros(len(relation_Q)), {}
    local, is_sampled = None, False
    for batch in score(kg, source_Q, relation_Q):
        for q, row in zip(batch.query.tolist(), batch.row.tolist(), strict=True):
            answers, wanted = batch.answers(row), answer_Q[q : q + 1]
            local, is_sampled = answers.local, answers.is_sampled
            score_Q[q] = answers.at(wanted).float()[0]
            if (weight_1K := answers.weights(wanted)) is not None:
                weights[q] = weight_1K[0].float()
    weight_QK = torch.stack([weights[q] for q in range(len(relation_Q))]) if weights else None
    return mean_of_ends(score_Q, weight_QK, local, is_sampled)


@torch.no_grad()
def pair_near_both(
    model: GammaModel,
    kg: KnowledgeGraph,
    head: int,
    relation_A: Tensor,
    tail: int,
    triples: int,
    cache: RelationCache,
    memory: str | int | None = None,
) -> PairScores:
    """From neighbourhoods of at most `triples` facts around both ends."""
    device = model.score.out.weight.device
    memory_bytes = budget(memory, device)
    sizes = neighbourhood_sizes(kg, triples)
    shares = [1.0] if len(sizes) == 1 else [WIDE_SHARE, 1 - WIDE_SHARE]
    ends = torch.tensor([head, tail])
    around = [around_both(kg.edges, ends.unique(), size) for size in sizes]
    graphs = [hood.edges.to(device) for hood in around]
    step = batch_size(model, triples, memory_bytes)
    parts, weights = [], []
    with evaluating(model):
        for queries in zip(*(ids.split(step) for ids in queries_between(kg, head, relation_A, tail)), strict=True):
            source_B, relation_B, answer_B = queries
            relations = relation_states(model, kg, relation_B, cache, memory_bytes)
            relations = relations._replace(which_B=relations.which_B.to(device))
            score_B, one_B = torch.zeros(len(source_B)), torch.zeros_like(source_B)
            for hood, graph, share in zip(around, graphs, shares, strict=True):
                starts = Starts.single(hood.places(one_B, source_B)).to(device)
                answer_B1 = hood.places(one_B, answer_B)[:, None].to(device)
                found = model.score_entities(graph, relations, starts, relation_B.to(device), answer_B1)
                score_B1 = found.score_BC.float().cpu()
                require_finite(kg, score_B1, Starts.single(source_B), relation_B)
                score_B += share * score_B1[:, 0]
                if hood is around[0] and found.weight_BCK is not None:
                    weights.append(found.weight_BCK[:, 0].float().cpu())
            parts.append(score_B)
    return mean_of_ends(torch.cat(parts), torch.cat(weights) if weights else None, triples)


def around_both(edges: Edges, ends: Tensor, triples: int) -> Neighbourhoods:
    """The neighbourhood of at most `triples` facts, or of so many as it takes until all the ends are in it: there may
    be more facts between two entities than that."""
    both = Starts.of_weights(torch.zeros_like(ends), ends, torch.ones(len(ends)), 1)
    while True:
        hood = grow(edges, both, triples)
        if bool((hood.places(torch.zeros_like(ends), ends) >= 0).all()):
            return hood
        triples *= 2
