"""A stack of relational layers that starts from a few labelled nodes: used for relations and for each entity branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.parameters import LayerStack, RelationTables
from gamma_kg.nn.layer import RelationalLayer


class GivenRelations(NamedTuple):
    """What an encoder is told of the relations; nothing where its layers own their relation vectors."""

    state_URD: Tensor | None = None  # for U distinct relations
    which_B: Tensor | None = None  # the one of them that belongs to each query
    # What each layer makes of the states, where that is known already; a gradient goes through the states.
    tables: Sequence[RelationTables] | None = None


OWN_RELATIONS = GivenRelations()


class Encoder(nn.Module):
    """States of all nodes as seen from the starts: zero everywhere but the boundary at the starts, then T layers."""

    def __init__(
        self, dim: int, num_layers: int, algebra: str, num_types: int | None = None, aggregation: str = "sum"
    ) -> None:
        super().__init__()
        self.algebra = algebra
        self.layers = nn.ModuleList(RelationalLayer(dim, algebra, num_types, aggregation) for _ in range(num_layers))

    def forward(
        self, edges: EdgeGroups, starts: Starts, boundary_BD: Tensor, relations: GivenRelations = OWN_RELATIONS
    ) -> Tensor:
        """The last layer's states, (B, N, D)."""
        if not self._learns(boundary_BD, relations.state_URD):
            with torch.no_grad():
                return backend_of(boundary_BD.device).layers(edges, starts, boundary_BD, self._stack(relations))
        x_BND: Tensor | None = None
        for layer in self._layers():
            own_BRW = relation_of_queries(layer, relations.state_URD, relations.which_B)
            x_BND = layer(edges, x_BND, own_BRW, starts, boundary_BD)
        return starts.spread(edges.num_nodes, boundary_BD) if x_BND is None else x_BND

    def _learns(self, *given: Tensor | None) -> bool:
        """Whether a gradient is wanted: not where these weights stay as they are and nothing before them learns."""
        if not torch.is_grad_enabled():
            return False
        return any(t is not None and t.requires_grad for t in given) or any(p.requires_grad for p in self.parameters())

    def forward_union(
        self, edges: EdgeGroups, offset_B1: Tensor, starts: Starts, boundary_BD: Tensor, relations: GivenRelations
    ) -> Tensor:
        """The same for B small graphs side by side as one, query b having the nodes offset[b] : offset[b + 1]: (N, D).

        No gradients.
        """
        backend = backend_of(boundary_BD.device)
        return backend.union_layers(edges, offset_B1, starts, boundary_BD, self._stack(relations))

    def tables(self, relation_URD: Tensor | None) -> list[Tensor]:
        """The relation vectors of each layer."""
        return [layer.relation_table(relation_URD) for layer in self._layers()]

    def _stack(self, relations: GivenRelations) -> LayerStack:
        made = self.tables(relations.state_URD) if relations.tables is None else relations.tables
        return LayerStack([layer.weights() for layer in self._layers()], made, relations.which_B)

    def _layers(self) -> list[RelationalLayer]:
        return [layer for layer in self.layers if isinstance(layer, RelationalLayer)]


def relation_of_queries(layer: RelationalLayer, relation_URD: Tensor | None, which_B: Tensor | None) -> Tensor:
    """The layer's relation vectors for each query, (B, R, W), or (1, R, W) where all queries share them."""
    table = layer.relation_table(relation_URD)
    return table if which_B is None else table[which_B]
