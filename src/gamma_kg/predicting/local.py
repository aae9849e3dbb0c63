"""Local answers: a query costs what its neighbourhood costs, whatever the size of the graph.

    start → a wide and, in sparse graphs, a near neighbourhood, in dense ones a wider one of a hub (kernels/growth.py)
    neighbourhoods → scores of their entities, with relation states of the whole graph
    all other entities → the background of the relation (predicting/background.py)

B queries of a batch, Q queries asked for, N entities of all neighbourhoods together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.neighbourhoods import Neighbourhoods
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.growth import grow
from gamma_kg.machine.memory import budget
from gamma_kg.nn.local_answers import Background, LocalAnswers, Seen
from gamma_kg.nn.model import GammaModel, RelationStates, Scores
from gamma_kg.predicting.background import BackgroundCache
from gamma_kg.predicting.inference import check_queries, distinct_queries, evaluating, require_finite
from gamma_kg.predicting.relation_cache import LAYER_STATES, RelationCache, relation_states
from gamma_kg.predicting.score_batch import ScoreBatch
from gamma_kg.predicting.switch import neighbourhood_sizes

LARGEST_BATCH = 64


@torch.no_grad()
def local_batches(
    model: GammaModel,
    kg: KnowledgeGraph,
    start_Q: Starts | Tensor,
    relation_Q: Tensor,
    triples: int,
    cache: RelationCache,
    backgrounds: BackgroundCache,
    *,
    memory: str | int | None = None,
    on_asked: bool = False,
) -> Iterator[ScoreBatch]:
    """Like `inference.score_batches`, from neighbourhoods of about `triples` facts (`neighbourhood_sizes`)."""
    check_queries(kg, start_Q, relation_Q)
    memory_bytes = budget(memory, model.score.out.weight.device)
    with evaluating(model):
        for query_P, sizes in _by_sizes(kg, start_Q, triples):
            start_P = start_Q.select(query_P) if isinstance(start_Q, Starts) else start_Q[query_P]
            for part in distinct_queries(kg, start_P, relation_Q[query_P], batch_size(model, sizes[0], memory_bytes)):
                own = query_P[part.first]
                start_B = start_Q.select(own) if isinstance(start_Q, Starts) else Starts.single(start_Q[own])
                relation_B = relation_Q[own]
                asked = relation_B.unique().tolist()
                of_relation = backgrounds.of_all(model, kg, asked, cache, memory_bytes, on_asked=on_asked)
                relations = relation_states(model, kg, relation_B, cache, memory_bytes, on_asked=on_asked)
                found = _answers(model, kg, sizes, relations, start_B, relation_B, of_relation)
                yield ScoreBatch(query_P[part.query], part.row, found)


def _answers(
    model: GammaModel,
    kg: KnowledgeGraph,
    sizes: Sequence[int],
    relations: RelationStates,
    start_B: Starts,
    relation_B: Tensor,
    of_relation: Mapping[int, Background],
) -> list[LocalAnswers]:
    """What neighbourhoods of these sizes say to each query."""
    wide, *near = (
        _seen(model, kg, neighbourhoods_of(kg.edges, start_B, size), relations, start_B, relation_B) for size in sizes
    )
    return [
        LocalAnswers.of(sizes[0], wide[b], near[0][b] if near else None, of_relation[relation])
        for b, relation in enumerate(relation_B.tolist())
    ]


def _by_sizes(kg: KnowledgeGraph, start_Q: Starts | Tensor, triples: int) -> Iterator[tuple[Tensor, list[int]]]:
    """Positions of the queries whose neighbourhoods have the same sizes, and these. A set of starts is no crowd."""
    if isinstance(start_Q, Starts) and not start_Q.is_single:
        yield torch.arange(len(start_Q)), neighbourhood_sizes(kg, triples)
        return
    degrees = kg.edges.degrees((start_Q.node_S if isinstance(start_Q, Starts) else start_Q).cpu()).tolist()
    queries: dict[tuple[int, ...], list[int]] = {}
    for q, degree in enumerate(degrees):
        queries.setdefault(tuple(neighbourhood_sizes(kg, triples, degree)), []).append(q)
    for sizes, own in queries.items():
        yield torch.tensor(own), list(sizes)


def neighbourhoods_of(edges: Edges, starts: Starts, triples: int) -> Neighbourhoods:
    """The neighbourhood of each query; those of one source, which differ in their relation, share its growth."""
    if not starts.is_single:
        return grow(edges, starts, triples)
    source_U, which_B = starts.node_S.unique(return_inverse=True)
    if len(source_U) == len(starts):
        return grow(edges, starts, triples)
    return grow(edges, source_U, triples).repeated(which_B)


def _seen(
    model: GammaModel,
    kg: KnowledgeGraph,
    hoods: Neighbourhoods,
    relations: RelationStates,
    starts: Starts,
    relation_B: Tensor,
) -> list[Seen]:
    """What the model says in the neighbourhood of each query."""
    score_N, weight_NK = score_neighbourhoods(model, hoods, relations, starts, relation_B)
    sizes = hoods.offset_B1.diff().tolist()
    score_BM = score_N.split(sizes)
    if not bool(score_N.isfinite().all()):
        require_finite(kg, torch.stack([score_M.sum()[None] for score_M in score_BM]), starts, relation_B)
    weight_BMK = [None] * len(sizes) if weight_NK is None else weight_NK.split(sizes)
    return list(map(Seen, hoods.entity_N.split(sizes), score_BM, weight_BMK))


def score_neighbourhoods(
    model: GammaModel, hoods: Neighbourhoods, relations: RelationStates, starts: Starts, relation_B: Tensor
) -> Scores:
    """Scores (N,) and branch weights (N, K) of all entities in there; `starts` by the numbers of the whole graph."""
    device = model.score.out.weight.device
    place_S = hoods.places(starts.query_S, starts.node_S)
    is_inside = place_S >= 0  # of very many starts some may have found no room
    place_S, order = place_S[is_inside].sort()
    weight_S = None if starts.weight_S is None else starts.weight_S[is_inside][order]
    inside = Starts(place_S, weight_S, torch.searchsorted(place_S, hoods.offset_B1))
    scores = model.score_neighbourhoods(
        hoods.edges.to(device),
        hoods.offset_B1.to(device),
        relations._replace(which_B=relations.which_B.to(device)),
        inside.to(device),
        relation_B.to(device),
    )
    return Scores(scores.score_BC.cpu(), None if scores.weight_BCK is None else scores.weight_BCK.cpu())


def batch_size(model: GammaModel, triples: int, memory: int) -> int:
    """How many queries at once: a neighbourhood has seldom more entities than facts."""
    config = model.config
    floats = triples * config.dim * (config.num_branches + LAYER_STATES)
    return int(min(LARGEST_BATCH, max(1, memory // (floats * model.score.out.weight.element_size()))))
