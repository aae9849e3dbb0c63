"""Scoring queries without gradients: distinct queries once, relation states once per graph, memory bounded.

B queries of a batch, N entities, K branches, Q queries asked for.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gamma_kg.errors import DataError, NonFiniteScoreError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import is_inverse
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.prepared import PreparedEdges
from gamma_kg.machine.memory import budget
from gamma_kg.nn.answers import Answers, WholeAnswers, log_totals
from gamma_kg.nn.model import GammaModel, RelationStates, Scores

# State tensors (N·D) alive at once while the last branch runs: its input, aggregate, two products and the output;
# the finished states of the other branches come on top.
LAYER_STATES = 5


class Ranked(NamedTuple):
    """The best candidates of a query, best first."""

    entity: list[int]
    score: list[float]
    weight: list[list[float]] | None  # of the branches; None where the model has none
    log_total: float  # log Σ exp(score) over all candidates


def ranked_of(answers: Answers, count: int, without: Tensor) -> Ranked:
    """The best candidates of one query, less the entities `without`."""
    entity, score, log_total = answers.ranked(count, without)
    weight_nK = answers.weights(entity)
    return Ranked(entity.tolist(), score.tolist(), None if weight_nK is None else weight_nK.tolist(), log_total)


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Scores of some distinct queries, and which of the queries asked for they answer."""

    query: Tensor  # positions in the caller's list of queries
    row: Tensor  # for each of these, its row in the scores
    found: Scores | Sequence[Answers]  # dense from a whole graph, else an answer per row

    @cached_property
    def scores(self) -> Scores:
        """Rows with all entities. Those of local answers are made when asked for: `answers` costs less."""
        if isinstance(self.found, Scores):
            return self.found
        everyone = torch.arange(self.found[0].num_entities)
        weights = [answers.weights(everyone) for answers in self.found]
        known = [weight_NK for weight_NK in weights if weight_NK is not None]
        return Scores(self.dense(), torch.stack(known) if len(known) == len(weights) else None)

    def dense(self) -> Tensor:
        """The scores of all entities without the branch weights, a row for each distinct query."""
        if isinstance(self.found, Scores):
            return self.found.score_BC
        return torch.stack([answers.dense() for answers in self.found])

    def answers(self, row: int) -> Answers:
        """What is said of all candidates of one of the queries, on the CPU."""
        if not isinstance(self.found, Scores):
            return self.found[row]
        score_BN, weight_BNK = self.found
        return WholeAnswers(score_BN[row].cpu(), None if weight_BNK is None else weight_BNK[row].cpu())

    def ranked(self, rows: Sequence[int], count: int, without: Sequence[Tensor]) -> list[Ranked]:
        """The best candidates of some queries, less the entities `without` of each."""
        if isinstance(self.found, Scores):
            return _ranked_whole(self.found, rows, count, without)
        return [ranked_of(self.found[row], count, own) for row, own in zip(rows, without, strict=True)]


class _Kept(NamedTuple):
    """One relation of a graph: the states of all relations as seen from it, and what the branches make of them."""

    state_1RQ: Tensor
    tables: list[list[Tensor]] | None  # of each branch and layer, (1, R, W); None where there was no room for it


class RelationCache:
    """Relation states of a model per (graph, relation); bounded in bytes, and gone with the graph.

    Several threads may ask at once: one computes what is missing, the others wait for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._graphs: weakref.WeakKeyDictionary[KnowledgeGraph, OrderedDict[int, _Kept]] = weakref.WeakKeyDictionary()
        self._weights: tuple[tuple[int, int], ...] = ()

    def states(
        self, model: GammaModel, kg: KnowledgeGraph, relation_U: Tensor, max_bytes: int
    ) -> tuple[Tensor, list[list[Tensor]] | None]:
        """States of all relations as seen from each of `relation_U`, (U, R, Q), and what `relation_tables` makes of
        them, (U, R, W) for each branch and layer: a small query would take a fifth of its time for that alone."""
        with self._lock:
            found = self._states(model, kg, relation_U, max_bytes)
        if len(found) == 1:
            return found[0]
        tables = [kept.tables for kept in found if kept.tables is not None]
        if len(tables) < len(found):
            return torch.cat([kept.state_1RQ for kept in found]), None
        joined = [
            [torch.cat(layer) for layer in zip(*of_branch, strict=True)] for of_branch in zip(*tables, strict=True)
        ]
        return torch.cat([kept.state_1RQ for kept in found]), joined

    def _states(self, model: GammaModel, kg: KnowledgeGraph, relation_U: Tensor, max_bytes: int) -> list[_Kept]:
        weights = weights_version(model)
        if weights != self._weights:  # the model was trained, loaded or moved since
            self._graphs.clear()
            self._weights = weights
        kept = self._graphs.setdefault(kg, OrderedDict())
        wanted = relation_U.tolist()
        missing = [r for r in wanted if r not in kept]
        device = model.score.out.weight.device
        found = {r: kept[r] for r in wanted if r in kept}
        relation_graph = backend_of(device).upload(kg.relation_graph_as(model.config.relation_graph))
        element = model.score.out.weight.element_size()
        row_bytes = relation_graph.num_nodes * model.query_width * element
        step = max(1, max_bytes // (row_bytes * (LAYER_STATES + 2)))
        for start in range(0, len(missing), step):
            part = missing[start : start + step]
            states = model.encode_relations(relation_graph, torch.tensor(part, device=device))
            # Copies: a row that is a view would keep its whole batch in memory as long as it lives.
            found.update(zip(part, (_Kept(row[None].clone(), None) for row in states), strict=True))
        table_bytes = relation_graph.num_nodes * model.table_width * element
        if len(wanted) * (row_bytes + table_bytes) <= max_bytes:
            for r in wanted:
                if found[r].tables is None:
                    found[r] = _Kept(found[r].state_1RQ, model.relation_tables(found[r].state_1RQ))
        for r in wanted:
            kept[r] = found[r]
            kept.move_to_end(r)
        while _bytes(kept.values(), row_bytes, table_bytes) > max_bytes and len(kept) > 1:
            kept.popitem(last=False)
        return [found[r] for r in wanted]


def weights_version(model: nn.Module) -> tuple[tuple[int, int], ...]:
    """Other than before if weights were trained, loaded or moved since.

    Asked at every query, and so without the names that `model.parameters()` makes on its way.
    """
    found: list[tuple[int, int]] = []
    modules = [model]
    while modules:
        module = modules.pop()
        found += [(p.data_ptr(), p._version) for p in module._parameters.values() if p is not None]
        modules += [child for child in module._modules.values() if child is not None]
    return tuple(found)


def _bytes(kept: Iterable[_Kept], row_bytes: int, table_bytes: int) -> int:
    return sum(row_bytes + (table_bytes if one.tables is not None else 0) for one in kept)


def batch_size(model: GammaModel, kg: KnowledgeGraph, memory: int) -> int:
    """How many queries fit into `memory` bytes at once; at least one."""
    config = model.config
    floats = kg.num_entities * (config.dim * (config.num_branches + LAYER_STATES) + 2 * config.num_branches + 2)
    # The relation vectors of a query for all layers, and the hidden layer that projects them.
    width = float(max(ALGEBRAS[name].relation_width for name in config.branches))
    floats += int(kg.num_types * config.dim * (2 + width * config.num_layers))
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
        ("relation", relation_Q, kg.num_types),
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
    Relation states are conditioned on the direct relation, or, as weights that were trained on logical queries want it,
    `on_asked`: on the asked relation itself.
    """
    check_queries(kg, start_Q, relation_Q)
    device = model.score.out.weight.device
    edges = backend_of(device).prepare(kg.edges)
    memory_bytes = budget(memory, device)
    starts = start_Q if isinstance(start_Q, Starts) else Starts.single(start_Q)
    was_training = model.training
    if was_training:  # both ways go through all modules, which takes longer than a small query
        model.eval()
    try:
        for part in distinct_queries(kg, start_Q, relation_Q, batch_size(model, kg, memory_bytes)):
            starts_B, relation_B = starts.select(part.first), relation_Q[part.first].to(device)
            relations = relation_states(model, kg, relation_B, cache, memory_bytes, on_asked=on_asked)
            scores = model.score_entities(edges, relations, edges.renamed(starts_B), relation_B)
            require_finite(kg, scores.score_BC, starts_B, relation_B)
            yield ScoreBatch(part.query, part.row, _by_entity(scores, edges))
    finally:
        if was_training:
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


def relation_states(
    model: GammaModel,
    kg: KnowledgeGraph,
    relation_B: Tensor,
    cache: RelationCache,
    memory_bytes: int,
    *,
    on_asked: bool = False,
) -> RelationStates:
    """What the whole graph says of the relations of a batch."""
    condition_B = relation_B.cpu() if on_asked else kg.direct(relation_B.cpu())
    condition_U, which_B = condition_B.unique(return_inverse=True)
    state_URQ, tables = cache.states(model, kg, condition_U, memory_bytes // 4)
    return RelationStates(state_URQ, which_B.to(relation_B.device), tables)


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


def _ranked_whole(scores: Scores, rows: Sequence[int], count: int, without: Sequence[Tensor]) -> list[Ranked]:
    """All queries in a few passes, each of which treats a row as if it were alone."""
    row_Q = torch.tensor(rows, dtype=torch.long)
    score_QN = scores.score_BC[row_Q].cpu()
    number = torch.repeat_interleave(torch.arange(len(rows)), torch.tensor([len(ids) for ids in without]))
    score_QN[number, torch.cat([*without, row_Q[:0]])] = -torch.inf
    best_Qn, entity_Qn = score_QN.topk(min(count, score_QN.shape[1]), dim=1)
    weight = None if scores.weight_BCK is None else scores.weight_BCK[row_Q[:, None], entity_Qn].cpu().tolist()
    found = []
    for q, (entity, score, log_total) in enumerate(
        zip(entity_Qn.tolist(), best_Qn.tolist(), log_totals(score_QN), strict=True)
    ):
        are_candidates = score.index(-math.inf) if score and score[-1] == -math.inf else len(score)
        own = None if weight is None else weight[q][:are_candidates]
        found.append(Ranked(entity[:are_candidates], score[:are_candidates], own, log_total))
    return found
