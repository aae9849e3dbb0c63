"""Scoring queries without gradients: distinct queries once, relation states once per graph, memory bounded.

B queries of a batch, N entities, K branches, Q queries asked for.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import is_inverse
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.head import can_score
from gamma_kg.kernels.renumber import renumbered
from gamma_kg.machine.memory import budget
from gamma_kg.nn.model import GammaModel, RelationStates, Scores

# State tensors (N·D) alive at once while the last branch runs: its input, aggregate, two products and the output;
# the finished states of the other branches come on top.
LAYER_STATES = 5


class ScoreBatch(NamedTuple):
    """Scores of some distinct queries, and which of the queries asked for they answer."""

    query: Tensor  # positions in the caller's list of queries
    row: Tensor  # for each of these, its row in the scores
    scores: Scores


class RelationCache:
    """Relation states of a model per (graph, relation); bounded in bytes, and gone with the graph."""

    def __init__(self) -> None:
        self._graphs: weakref.WeakKeyDictionary[KnowledgeGraph, OrderedDict[int, Tensor]] = weakref.WeakKeyDictionary()
        self._weights: tuple[tuple[int, int], ...] = ()

    def states(self, model: GammaModel, kg: KnowledgeGraph, relation_U: Tensor, max_bytes: int) -> Tensor:
        """States of all relations as seen from each of `relation_U`, (U, R, D)."""
        weights = tuple((p.data_ptr(), p._version) for p in model.relation_encoder.parameters())
        if weights != self._weights:  # the model was trained, loaded or moved since
            self._graphs.clear()
            self._weights = weights
        kept = self._graphs.setdefault(kg, OrderedDict())
        wanted = relation_U.tolist()
        missing = [r for r in wanted if r not in kept]
        device = model.score.out.weight.device
        found: dict[int, Tensor] = {r: kept[r] for r in wanted if r in kept}
        relation_graph = kg.relation_graph.to(device)
        row_bytes = relation_graph.num_nodes * model.config.dim * model.score.out.weight.element_size()
        step = max(1, max_bytes // (row_bytes * (LAYER_STATES + 2)))
        for start in range(0, len(missing), step):
            part = missing[start : start + step]
            states = model.encode_relations(relation_graph, torch.tensor(part, device=device))
            found.update(zip(part, states, strict=True))
        for r in wanted:
            kept[r] = found[r]
            kept.move_to_end(r)
        while len(kept) * row_bytes > max_bytes and len(kept) > 1:
            kept.popitem(last=False)
        return torch.stack([found[r] for r in wanted])


def batch_size(model: GammaModel, kg: KnowledgeGraph, memory: int) -> int:
    """How many queries fit into `memory` bytes at once; at least one."""
    config = model.config
    floats = kg.num_entities * (config.dim * (config.num_branches + LAYER_STATES) + 2 * config.num_branches + 2)
    # The relation vectors of a query for all layers, and the hidden layer that projects them.
    width = float(max(ALGEBRAS[name].relation_width for name in config.branches))
    floats += int(2 * kg.num_relations * config.dim * (2 + width * config.num_layers))
    return max(1, memory // (floats * model.score.out.weight.element_size()))


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
        ("relation", relation_Q, 2 * kg.num_relations),
    ):
        if len(ids) and not (0 <= int(ids.min()) and int(ids.max()) < limit):
            raise DataError(f"{what} ids must lie in 0..{limit - 1}, found {int(ids.min())}..{int(ids.max())}")


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
) -> Iterator[ScoreBatch]:
    """Score all entities for the queries, a batch at a time; batches come in an order of their own.

    A tensor says that each query starts at one entity; such a query, asked for several times, is computed once.
    Relation states are conditioned on the direct relation, or, as the steps of a logical query want it, `on_asked`: on
    the asked relation itself.
    """
    check_queries(kg, start_Q, relation_Q)
    device = model.score.out.weight.device
    edges, place_N = renumbered(kg.edges.to(device))
    memory_bytes = budget(memory)
    # Queries with the same relation side by side, so that a batch needs few relation tables.
    key_Q = kg.direct(relation_Q) * 2 + is_inverse(relation_Q, kg.num_relations)
    if isinstance(start_Q, Starts):
        key_Q, starts = key_Q * len(start_Q) + torch.arange(len(start_Q)), start_Q
    else:
        key_Q, starts = key_Q * kg.num_entities + start_Q, Starts.single(start_Q)
    _, distinct_Q, count = key_Q.unique(return_inverse=True, return_counts=True)
    by_distinct = distinct_Q.argsort(stable=True)
    end = count.cumsum(0)
    size = batch_size(model, kg, memory_bytes)
    was_training = model.training
    model.eval()
    try:
        for start in range(0, len(count), size):
            stop = min(start + size, len(count))
            query = by_distinct[int(end[start] - count[start]) : int(end[stop - 1])]
            first = by_distinct[(end - count)[start:stop]]
            starts_B, relation_B = starts.select(first).to(device).renamed(place_N), relation_Q[first].to(device)
            condition_B = relation_Q[first] if on_asked else kg.direct(relation_Q[first])
            condition_U, which_B = condition_B.unique(return_inverse=True)
            state_URD = cache.states(model, kg, condition_U, memory_bytes // 4)
            relations = RelationStates(state_URD, which_B.to(device))
            scores = _score(model, edges, relations, starts_B, relation_B)
            yield ScoreBatch(query, distinct_Q[query] - start, _by_entity(scores, place_N))
    finally:
        model.train(was_training)


def _by_entity(scores: Scores, place_N: Tensor) -> Scores:
    """Scores of the renumbered graph, in the order of the entities."""
    weight_BNK = scores.weight_BCK
    return Scores(scores.score_BC[:, place_N], None if weight_BNK is None else weight_BNK[:, place_N])


def _score(model: GammaModel, edges: Edges, relations: RelationStates, starts: Starts, relation_B: Tensor) -> Scores:
    """Scores of all entities; the score's wide hidden layer is computed for a block of entities at a time."""
    query_BD = relations.state_URD[relations.which_B, relation_B]
    z_KBND = model.encode_entities(edges, relations, starts, query_BD)
    if can_score(z_KBND):  # the native pass works in blocks of its own
        return model.fuse(z_KBND, query_BD)
    num_entities, widest = (
        edges.num_nodes,
        max(model.score.hidden.weight.shape[0], model.config.attention_dim),
    )
    block = max(1, num_entities * model.config.dim // (4 * widest))
    parts = [
        model.fuse([z_BND[:, start : start + block] for z_BND in z_KBND], query_BD)
        for start in range(0, num_entities, block)
    ]
    if not parts:
        return Scores(query_BD.new_zeros(len(starts), 0), None)
    weights = [part.weight_BCK for part in parts if part.weight_BCK is not None]
    return Scores(torch.cat([part.score_BC for part in parts], dim=1), torch.cat(weights, dim=1) if weights else None)
