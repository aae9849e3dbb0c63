"""What a model makes of a graph's relations, kept for all queries that come.

U relations that are asked about, R relations and inverses, Q channels of their states, W width of a relation vector.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.parameters import RelationTables
from gamma_kg.nn.model import GammaModel, RelationStates
from gamma_kg.predicting.kept_per_graph import KeptPerGraph

# State tensors (N·D) alive at once while the last branch runs: its input, aggregate, two products and the output;
# the finished states of the other branches come on top.
LAYER_STATES = 5


class _Kept(NamedTuple):
    """One relation of a graph: the states of all relations as seen from it, and what the branches make of them."""

    state_1RQ: Tensor
    tables: list[list[Tensor]] | None  # of each branch and layer, (1, R, W); None where there was no room for it


class RelationCache:
    """Relation states of a model per (graph, relation), bounded in bytes."""

    def __init__(self) -> None:
        self._graphs: KeptPerGraph[int, _Kept] = KeptPerGraph()

    def states(
        self, model: GammaModel, kg: KnowledgeGraph, relation_U: Tensor, max_bytes: int
    ) -> tuple[Tensor, Sequence[Sequence[RelationTables]] | None]:
        """States of all relations as seen from each of `relation_U`, (U, R, Q), and what `relation_tables` makes of
        them for each branch and layer: a small query would take a fifth of its time for that alone."""
        with self._graphs.of(model, kg) as kept:
            found = _states(kept, model, kg, relation_U, max_bytes)
        if len(found) == 1:
            return found[0]
        tables = [kept.tables for kept in found if kept.tables is not None]
        if len(tables) < len(found):
            return torch.cat([kept.state_1RQ for kept in found]), None
        each = [
            [[table_1RW[0] for table_1RW in layer] for layer in zip(*of_branch, strict=True)]
            for of_branch in zip(*tables, strict=True)
        ]
        return torch.cat([kept.state_1RQ for kept in found]), each


def _states(
    kept: OrderedDict[int, _Kept], model: GammaModel, kg: KnowledgeGraph, relation_U: Tensor, max_bytes: int
) -> list[_Kept]:
    """What is kept of each relation, with what is missing added."""
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


def _bytes(kept: Iterable[_Kept], row_bytes: int, table_bytes: int) -> int:
    return sum(row_bytes + (table_bytes if one.tables is not None else 0) for one in kept)


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
