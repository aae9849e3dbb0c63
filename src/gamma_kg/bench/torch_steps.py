"""Steps of logical queries the way the official executor takes them, by torch: what `gamma bench --queries` sets ours
against.

Relation states are computed for every query again, the edges are sorted and gathered again in every layer, and linear
map, normalisation and score are passes of their own over memory. Only the sums over edges go by our engine, which does
them quicker than the kernel of the official code does (FB15k-237, eight queries, two threads: 18 against 54 ms).
So this takes less time than the official code would, and what we gain on it is a lower bound.

B projections, N nodes, R edge types, D channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


class TorchSteps(Projector):
    """Projects with a model of one branch and no attention; degree = sigmoid(score)."""

    def __init__(self, model: GammaModel, kg: KnowledgeGraph) -> None:
        super().__init__(kg)
        self._model = model
        self._relation_graph = kg.relation_graph_as(model.config.relation_graph)

    @torch.no_grad()
    def project(self, operands: Sequence[Operand], relations: Sequence[int]) -> Tensor:
        weight_BN = torch.zeros(len(operands), self.kg.num_entities)
        for weight_N, operand in zip(weight_BN, operands, strict=True):
            if isinstance(operand, Tensor):
                weight_N.copy_(operand)
            else:
                weight_N[operand] = 1
        parts = zip(weight_BN.split(BATCH), torch.tensor(relations).split(BATCH), strict=True)
        return torch.cat([self._projected(weight, relation) for weight, relation in parts])

    def _projected(self, weight_BN: Tensor, relation_B: Tensor) -> Tensor:
        model, query = self._model, torch.arange(len(relation_B))
        (branch,) = model.branches
        assert isinstance(branch, Encoder) and isinstance(model.relation_encoder, Encoder)
        asked_BRD = torch.zeros(len(query), self._relation_graph.num_nodes, model.config.dim)
        asked_BRD[query, relation_B] = 1
        state_BRD = _encoded(self._relation_graph, asked_BRD, model.relation_encoder, None)
        vector_BD = state_BRD[query, relation_B]
        z_BND = _encoded(self.kg.edges, weight_BN[..., None] * vector_BD[:, None], branch, state_BRD)
        features_BNF = torch.cat((z_BND, vector_BD[:, None].expand_as(z_BND)), dim=-1)
        score_BN: Tensor = model.score.out(F.relu(model.score.hidden(features_BNF)))[..., 0]
        return score_BN.sigmoid()


def _encoded(edges: Edges, boundary_BND: Tensor, encoder: Encoder, state_BRD: Tensor | None) -> Tensor:
    triple = _triples(edges)
    x_BND = boundary_BND
    for layer in _layers(encoder):
        table_BRD = _table(layer.relation, state_BRD, len(x_BND))
        _sorted(*triple)  # what the sums would go by
        agg_BND = backend_of(x_BND.device).propagate(edges, x_BND, table_BRD, encoder.algebra)
        hidden_BND = layer.linear(torch.cat((x_BND, agg_BND + boundary_BND), dim=-1))
        x_BND = F.relu(layer.norm(hidden_BND)) + x_BND
    return x_BND


def _table(relation: nn.Module, state_BRD: Tensor | None, count: int) -> Tensor:
    """Relation vectors for each projection: the layer's own, or made of the relation states."""
    if isinstance(relation, nn.Embedding):
        return relation.weight.expand(count, -1, -1).contiguous()
    table_BRD: Tensor = relation(state_BRD)
    return table_BRD


def _layers(encoder: Encoder) -> Iterable[RelationalLayer]:
    return (layer for layer in encoder.layers if isinstance(layer, RelationalLayer))


def _triples(edges: Edges) -> tuple[Tensor, Tensor, Tensor]:
    """Nodes, neighbours and types of all edges."""
    group_N, edge_G = edges.node_ptr.diff(), edges.group_ptr.diff()
    node_G = torch.arange(edges.num_nodes).repeat_interleave(group_N)
    return node_G.repeat_interleave(edge_G), edges.neighbour.long(), edges.group_type.long().repeat_interleave(edge_G)


def _sorted(node: Tensor, neighbour: Tensor, type_: Tensor) -> list[Tensor]:
    order = (node * (neighbour.max() + 1) + neighbour).argsort()
    return [column[order] for column in (node, neighbour, type_, torch.ones(len(node)))]
