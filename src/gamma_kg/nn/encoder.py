"""A stack of relational layers that starts from one labelled node: used for relations and for each entity branch."""

from __future__ import annotations

from torch import Tensor, nn

from gamma_kg.graph.edges import Edges
from gamma_kg.kernels.fused import can_fuse
from gamma_kg.nn.layer import RelationalLayer, initial_state


class Encoder(nn.Module):
    """States of all nodes as seen from a source node: zero everywhere but the boundary at the source, then T layers."""

    def __init__(self, dim: int, num_layers: int, algebra: str, num_types: int | None = None) -> None:
        super().__init__()
        self.algebra = algebra
        self.layers = nn.ModuleList(RelationalLayer(dim, algebra, num_types) for _ in range(num_layers))

    def forward(
        self,
        edges: Edges,
        source_B: Tensor,
        boundary_BD: Tensor,
        relation_URD: Tensor | None = None,
        which_B: Tensor | None = None,
    ) -> Tensor:
        """The last layer's states, (B, N, D).

        `relation_URD` are relation states for U distinct relations, `which_B` says which of them belongs to each
        query. Neither is given where the layers own their relation vectors.
        """
        if can_fuse(boundary_BD, self.algebra):
            return self._forward_fused(edges, source_B, boundary_BD, relation_URD, which_B)
        x_BND: Tensor | None = None
        for layer in self.layers:
            assert isinstance(layer, RelationalLayer)
            relation_BRW = relation_of_queries(layer, relation_URD, which_B)
            x_BND = layer(edges, x_BND, relation_BRW, source_B, boundary_BD)
        return initial_state(edges.num_nodes, source_B, boundary_BD) if x_BND is None else x_BND

    def _forward_fused(
        self,
        edges: Edges,
        source_B: Tensor,
        boundary_BD: Tensor,
        relation_URD: Tensor | None,
        which_B: Tensor | None,
    ) -> Tensor:
        """The same without gradients: two state tensors in turn, relation tables shared by the queries."""
        x_BND: Tensor | None = None
        spare_BND: Tensor | None = None
        for layer in self.layers:
            assert isinstance(layer, RelationalLayer)
            table_URW = layer.relation_table(relation_URD)
            out_BND = layer.fused(edges, x_BND, table_URW, which_B, source_B, boundary_BD, spare_BND)
            x_BND, spare_BND = out_BND, x_BND
        if x_BND is None:
            return initial_state(edges.num_nodes, source_B, boundary_BD)
        return x_BND


def relation_of_queries(layer: RelationalLayer, relation_URD: Tensor | None, which_B: Tensor | None) -> Tensor:
    """The layer's relation vectors for each query, (B, R, W), or (1, R, W) where all queries share them."""
    table = layer.relation_table(relation_URD)
    return table if which_B is None else table[which_B]
