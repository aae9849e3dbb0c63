"""Scoring queries without gradients: distinct queries once, relation states once per graph, memory bounded.

B queries of a batch, N entities, K branches, Q queries asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from gamma_kg.errors import DataError, NonFiniteScoreError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import is_inverse
from gamma_kg.graph.starts import Starts
from gamma_kg.graph.twins import Twins
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.prepared import PreparedEdges
from gamma_kg.machine.memory import budget
from gamma_kg.nn.model import GammaModel, Scores
from gamma_kg.predicting.relation_cache import LAYER_STATES, RelationCache, relation_states
from gamma_kg.predicting.score_batch import ScoreBatch

# What the layers leave of a batch, of all branches: as much as a third-level cache has room for beside what they work
# with. More goes to memory, and comes back from there to be scored: 6 % slower on CoDEx-S, 22 % on FB15k-237.
CACHED_BYTES = 16 << 20


@torch.no_grad()
def score_batches(
    model: GammaModel,
    kg: KnowledgeGraph,
    start_Q: Starts | Tensor,
    relation_Q: Tensor,
    cache: RelationCache,
    *,
    memory: str | int | None = None,
    on_asked: bool = False,
    twins: Twins | None = None,
) -> Iterator[ScoreBatch]:
    """Score all entities for the queries, a batch at a time; batches come in an order of their own.

    A tensor says that each query starts at one entity; such a query, asked for several times, is computed once.
    Relation states are conditioned on the direct relation, or, as weights that were trained on logical queries want it,
    `on_asked`: on the asked relation itself. With `twins` entities that have the same states are computed once; the
    scores differ in the last digits, and come without the weights of the branches.
    """
    check_queries(kg, start_Q, relation_Q)
    device = model.score.out.weight.device
    edges = backend_of(device).prepare(kg.edges)
    # A product with fewer rows is quicker on a processor; elsewhere the way there and back is not worth it.
    rows = backend_of(device).prepare(twins.edges) if twins is not None and device.type == "cpu" else None
    memory_bytes = budget(memory, device)
    starts = start_Q if isinstance(start_Q, Starts) else Starts.single(start_Q)
    with evaluating(model):
        size = batch_size(model, kg, memory_bytes)
        if device.type == "cpu":
            size = min(size, cached_queries(model, kg.num_entities if rows is None else rows.num_nodes))
        for part in distinct_queries(kg, start_Q, relation_Q, size):
            starts_B, relation_B = starts.select(part.first), relation_Q[part.first].to(device)
            relations = relation_states(model, kg, relation_B, cache, memory_bytes, on_asked=on_asked)
            merged = twins.merged(starts_B) if twins is not None and rows is not None else None
            if merged is None or rows is None:
                scores = _by_entity(model.score_entities(edges, relations, edges.renamed(starts_B), relation_B), edges)
            else:
                found = model.score_entities(rows, relations, rows.renamed(merged.starts), relation_B)
                scores = Scores(merged.by_entity(rows.by_node(found.score_BC)), None)
            require_finite(kg, scores.score_BC, starts_B, relation_B)
            yield ScoreBatch(part.query, part.row, scores)


@contextmanager
def evaluating(model: GammaModel) -> Iterator[None]:
    """Without dropout, and then as before."""
    if not model.training:  # to say so to all modules takes longer than a small query
        yield
        return
    model.eval()
    try:
        yield
    finally:
        model.train()


@dataclass(frozen=True, eq=False)
class QueryPart:
    """Some distinct queries of those asked for."""

    query: Tensor  # positions of all that ask one of them
    row: Tensor  # for each of these, which one
    first: Tensor  # for each distinct query, one position where it is asked


def distinct_queries(
    kg: KnowledgeGraph, start_Q: Starts | Tensor, relation_Q: Tensor, size: int
) -> Iterator[QueryPart]:
    """Each query once, `size` at a time; those of a relation side by side: a batch needs few relation tables."""
    key_Q = kg.direct(relation_Q) * 2 + is_inverse(relation_Q, kg.num_relations)
    if isinstance(start_Q, Starts):
        key_Q = key_Q * len(start_Q) + torch.arange(len(start_Q))
    else:
        key_Q = key_Q * kg.num_entities + start_Q
    _, distinct_Q, count = key_Q.unique(return_inverse=True, return_counts=True)
    by_distinct = distinct_Q.argsort(stable=True)
    end = count.cumsum(0)
    for start in range(0, len(count), size):
        stop = min(start + size, len(count))
        query = by_distinct[int(end[start] - count[start]) : int(end[stop - 1])]
        yield QueryPart(query, distinct_Q[query] - start, by_distinct[(end - count)[start:stop]])


def batch_size(model: GammaModel, kg: KnowledgeGraph, memory: int) -> int:
    """How many queries fit into `memory` bytes at once; at least one."""
    config = model.config
    floats = kg.num_entities * (config.dim * (config.num_branches + LAYER_STATES) + 2 * config.num_branches + 2)
    # The relation vectors of a query for all layers, and the hidden layer that projects them.
    width = float(max(ALGEBRAS[name].relation_width for name in config.branches))
    floats += int(kg.num_types * config.dim * (2 + width * config.num_layers))
    return max(1, memory // (floats * model.score.out.weight.element_size()))


def cached_queries(model: GammaModel, num_nodes: int) -> int:
    """How many queries to score at once, so that their states are still in cache then; at least one."""
    state_bytes = num_nodes * model.config.dim * model.score.out.weight.element_size()
    return max(1, CACHED_BYTES // max(1, state_bytes * model.config.num_branches))


def check_queries(kg: KnowledgeGraph, start_Q: Starts | Tensor, relation_Q: Tensor) -> None:
    """Refuse ids that the graph does not have, and starts and relations that are not of the same queries."""
    found = [len(start_Q)] if isinstance(start_Q, Starts) else list(start_Q.shape)
    if found != list(relation_Q.shape) or relation_Q.dim() != 1:
        raise DataError(
            "sources and relations must be two lists of the same length, "
            f"found shapes {found} and {list(relation_Q.shape)}"
        )
    for what, ids, limit in (
        ("source", start_Q.node_S if isinstance(start_Q, Starts) else start_Q, kg.num_entities),
        ("relation", relation_Q, kg.num_types),
    ):
        if len(ids) and not (0 <= int(ids.min()) and int(ids.max()) < limit):
            raise DataError(f"{what} ids must lie in 0..{limit - 1}, found {int(ids.min())}..{int(ids.max())}")


def require_finite(kg: KnowledgeGraph, score_BN: Tensor, starts: Starts, relation_B: Tensor) -> None:
    """Refuse scores that are not numbers: sorting would put them first."""
    finite_B = score_BN.isfinite().all(dim=1)
    if bool(finite_B.all()):
        return
    row = int((~finite_B).nonzero()[0])
    some = starts[row : row + 1].node_S.tolist()
    start = kg.entities[some[0]] if len(some) == 1 else f"{len(some)} starts"
    name = kg.relations[int(kg.direct(relation_B[row]))]
    reads_back = bool(is_inverse(relation_B[row], kg.num_relations))
    query = f"(?, {name}, {start})" if reads_back else f"({start}, {name}, ?)"
    raise NonFiniteScoreError(
        f"the scores for {query} are not finite (NaN or infinity): the model has diverged or is damaged"
    )


def _by_entity(scores: Scores, edges: PreparedEdges) -> Scores:
    """Scores of a prepared graph, in the order of the entities."""
    weight_BNK = scores.weight_BCK
    return Scores(edges.by_node(scores.score_BC), None if weight_BNK is None else edges.by_node(weight_BNK))
