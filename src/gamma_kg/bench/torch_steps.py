"""Steps of logical queries the way the official executor takes them, by torch: what `gamma bench --queries` sets ours
against.

Relation states are computed for every query again; in every layer the edges are sorted, gathered and checked again, the
states of a batch are turned to one row per node and back, and linear map, normalisation and score are passes of their
own over memory. The official code has a kernel of its own for the sums over edges, which is not at hand; what does them
here is handed in:

    by_engine    our engine, which is quicker than that kernel: ours is measured too low against the official code
    by_scatter   single operations of torch, which are slower: ours is measured too high
    a kernel     a plain loop, compiled as the official one is (`benchmarks/query_steps.py`): what comes nearest

B projections, N nodes, E edges, R edge types, D channels, F = B·D.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.kernels import backend_of
from gamma_kg.logic.project import Operand, Projector
from gamma_kg.nn.encoder import Encoder
from gamma_kg.nn.layer import RelationalLayer
from gamma_kg.nn.model import GammaModel

BATCH = 8  # projections at once, as the official code was timed with


class Columns(NamedTuple):
    """Edges as columns, a row for each."""

    node_E: Tensor
    neighbour_E: Tensor
    type_E: Tensor
    weight_E: Tensor


# The sums at every node, (N, F), of weight · relation · state over its edges; from columns sorted by node, relation
# vectors (R, F) and states (N, F).
Sums = Callable[[Columns, Tensor, Tensor], Tensor]


class TorchSteps(Projector):
    """Projects with a model of one branch and no attention; degree = sigmoid(score). No `sums`: by our engine."""

    def __init__(self, model: GammaModel, kg: KnowledgeGraph, sums: Sums | None = None, batch: int = BATCH) -> None:
        super().__init__(kg)
        self._model, self._sums, self._batch = model, sums, batch
        self._relation_graph = kg.relation_graph_as(model.config.relation_graph)
        self._columns = {edges: _columns(edges) for edges in (kg.edges, self._relation_graph)}

    @torch.no_grad()
    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        weight_BN = torch.zeros(len(operands), self.kg.num_entities)
        for weight_N, operand in zip(weight_BN, operands, strict=True):
            if isinstance(operand, Tensor):
                weight_N.copy_(operand)
            else:
                weight_N[operand] = 1
        parts = zip(weight_BN.split(self._batch), torch.tensor(relations).split(self._batch), strict=True)
        return torch.cat([self._projected(weight, relation) for weight, relation in parts])

    def _projected(self, weight_BN: Tensor, relation_B: Tensor) -> Tensor:
        model, query = self._model, torch.arange(len(relation_B))
        (branch,) = model.branches
        assert isinstance(branch, Encoder) and isinstance(model.relation_encoder, Encoder)
        asked_BRD = torch.zeros(len(query), self._relation_graph.num_nodes, model.config.dim)
        asked_BRD[query, relation_B] = 1
        state_BRD = self._encoded(self._relation_graph, asked_BRD, model.relation_encoder, None)
        vector_BD = state_BRD[query, relation_B]
        z_BND = self._encoded(self.kg.edges, weight_BN[..., None] * vector_BD[:, None], branch, state_BRD)
        features_BNF = torch.cat((z_BND, vector_BD[:, None].expand_as(z_BND)), dim=-1)
        score_BN: Tensor = model.score.out(F.relu(model.score.hidden(features_BNF)))[..., 0]
        return score_BN.sigmoid()

    def _encoded(self, edges: Edges, boundary_BND: Tensor, encoder: Encoder, state_BRD: Tensor | None) -> Tensor:
        x_BND = boundary_BND
        for layer in _layers(encoder):
            table_BRD = _table(layer.relation, state_BRD, len(x_BND))
            agg_BND = self._aggregated(edges, x_BND, table_BRD, boundary_BND, encoder.algebra)
            hidden_BND = layer.linear(torch.cat((x_BND, agg_BND), dim=-1))
            x_BND = F.relu(layer.norm(hidden_BND)) + x_BND
        return x_BND

    def _aggregated(self, edges: Edges, x_BND: Tensor, table_BRD: Tensor, boundary_BND: Tensor, algebra: str) -> Tensor:
        """Sums over edges and the boundary, from states that are turned to a row per node for it."""
        B, N, D = x_BND.shape
        x_NF, table_RF, boundary_NF = (states.transpose(0, 1).flatten(1) for states in (x_BND, table_BRD, boundary_BND))
        columns = _sorted(self._columns[edges])
        if self._sums is None:
            agg_BND = backend_of(x_BND.device).propagate(edges, x_BND, table_BRD.contiguous(), algebra)
            return agg_BND + boundary_BND
        assert algebra == "real"
        return (self._sums(columns, table_RF, x_NF) + boundary_NF).view(N, B, D).transpose(0, 1)


def by_scatter(columns: Columns, table_RF: Tensor, x_NF: Tensor) -> Tensor:
    """The sums by single operations of torch: a message for every edge, then all added up."""
    message_EF = x_NF[columns.neighbour_E] * table_RF[columns.type_E] * columns.weight_E[:, None]
    return torch.zeros_like(x_NF).index_add_(0, columns.node_E, message_EF)


def _table(relation: nn.Module, state_BRD: Tensor | None, count: int) -> Tensor:
    """Relation vectors for each projection: the layer's own, or made of the relation states."""
    if isinstance(relation, nn.Embedding):
        return relation.weight.expand(count, -1, -1)
    table_BRD: Tensor = relation(state_BRD)
    return table_BRD


def _layers(encoder: Encoder) -> Iterable[RelationalLayer]:
    return (layer for layer in encoder.layers if isinstance(layer, RelationalLayer))


def _columns(edges: Edges) -> Columns:
    group_N, edge_G = edges.node_ptr.diff(), edges.group_ptr.diff()
    node_G = torch.arange(edges.num_nodes).repeat_interleave(group_N)
    type_E = edges.group_type.long().repeat_interleave(edge_G)
    neighbour_E = edges.neighbour.long()
    return Columns(node_G.repeat_interleave(edge_G), neighbour_E, type_E, torch.ones(len(neighbour_E)))


def _sorted(columns: Columns) -> Columns:
    """By node and neighbour, and looked at whether they are."""
    order = _key(columns).argsort()
    found = Columns(*(column[order] for column in columns))
    assert bool((_key(found).diff() >= 0).all())
    return found


def _key(columns: Columns) -> Tensor:
    return columns.node_E * (columns.neighbour_E.max() + 1) + columns.neighbour_E
