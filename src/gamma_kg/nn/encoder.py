"""A stack of relational layers that starts from a few labelled nodes: used for relations and for each entity branch."""

from __future__ import annotations

from torch import Tensor, nn

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.fused import can_fuse, layers_forward
from gamma_kg.kernels.native import empty_states
from gamma_kg.nn.layer import RelationalLayer

# States of the queries that go through all layers together: about half of a third-level cache.
CACHE_BYTES = 16 << 20


class Encoder(nn.Module):
    """States of all nodes as seen from the starts: zero everywhere but the boundary at the starts, then T layers."""

    def __init__(self, dim: int, num_layers: int, algebra: str, num_types: int | None = None) -> None:
        super().__init__()
        self.algebra = algebra
        self.layers = nn.ModuleList(RelationalLayer(dim, algebra, num_types) for _ in range(num_layers))

    def forward(
        self,
        edges: Edges,
        starts: Starts,
        boundary_BD: Tensor,
        relation_URD: Tensor | None = None,
        which_B: Tensor | None = None,
    ) -> Tensor:
        """The last layer's states, (B, N, D).

        `relation_URD` are relation states for U distinct relations, `which_B` says which of them belongs to each
        query. Neither is given where the layers own their relation vectors.
        """
        if len(self.layers) and can_fuse(boundary_BD, self.algebra):
            return self._forward_fused(edges, starts, boundary_BD, relation_URD, which_B)
        x_BND: Tensor | None = None
        for layer in self.layers:
            assert isinstance(layer, RelationalLayer)
            relation_BRW = relation_of_queries(layer, relation_URD, which_B)
            x_BND = layer(edges, x_BND, relation_BRW, starts, boundary_BD)
        return starts.spread(edges.num_nodes, boundary_BD) if x_BND is None else x_BND

    def _forward_fused(
        self,
        edges: Edges,
        starts: Starts,
        boundary_BD: Tensor,
        relation_URD: Tensor | None,
        which_B: Tensor | None,
    ) -> Tensor:
        """The same without gradients: all layers for a few queries, whose states stay in cache, then the next few."""
        (B, D), N = boundary_BD.shape, edges.num_nodes
        out_BND = empty_states(boundary_BD, B, N, D)
        few = max(1, CACHE_BYTES // max(1, 2 * N * D * boundary_BD.element_size()))
        spare = [empty_states(boundary_BD, min(few, B), N, D) for _ in range(min(2, len(self.layers) - 1))]
        for start in range(0, B, few):
            part = slice(start, start + few)
            asked_URD, which = _asked(relation_URD, None if which_B is None else which_B[part])
            stages = []
            for step, layer in enumerate(self.layers):
                assert isinstance(layer, RelationalLayer)
                is_last = step == len(self.layers) - 1
                target = out_BND[part] if is_last else spare[step % 2][: len(starts[part])]
                stages.append(layer.stage(layer.relation_table(asked_URD), target))
            layers_forward(edges, None, stages, which, starts[part], boundary_BD[part], self.algebra)
        return out_BND


def _asked(relation_URD: Tensor | None, which_B: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """The relation states that these queries ask about, and which of them each query uses."""
    if relation_URD is None or which_B is None:
        return relation_URD, None
    asked, which_B = which_B.unique(return_inverse=True)
    return relation_URD[asked], which_B


def relation_of_queries(layer: RelationalLayer, relation_URD: Tensor | None, which_B: Tensor | None) -> Tensor:
    """The layer's relation vectors for each query, (B, R, W), or (1, R, W) where all queries share them."""
    table = layer.relation_table(relation_URD)
    return table if which_B is None else table[which_B]
