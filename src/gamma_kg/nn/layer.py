"""One relational layer, used for relations and for entities (docs/model.md §3).

    agg_v = boundary_v + Σ over edges (v, r, u) of f_r(x_u)
    out_v = x_v + ReLU(LayerNorm(W [x_v ; agg_v] + b))

B queries, N nodes, R edge types, D channels, W width of a relation vector.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import propagate
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.first import first_layer
from gamma_kg.kernels.fused import LayerWeights, Stage, can_fuse, layers_forward
from gamma_kg.kernels.training import can_train_fused, layer_with_gradients


class RelationalLayer(nn.Module):
    """Propagation with one message function, then a linear map, normalisation, ReLU and a residual.

    With `num_types` the layer owns a vector per edge type (relation graph). Without, it projects the relation
    states it is given to vectors for its message function (entity graph).
    """

    def __init__(self, dim: int, algebra: str, num_types: int | None = None) -> None:
        super().__init__()
        self.dim, self.algebra = dim, algebra
        width = int(ALGEBRAS[algebra].relation_width * dim)
        self.relation: nn.Module
        if num_types is None:
            self.relation = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, width))
        else:
            self.relation = nn.Embedding(num_types, width)
        self.linear = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim)

    def relation_table(self, relation_URD: Tensor | None) -> Tensor:
        """Relation vectors for the message function: (U, R, W), or (1, R, W) where the layer owns them."""
        if relation_URD is None:
            assert isinstance(self.relation, nn.Embedding)
            return self.relation.weight[None]
        table_URW: Tensor = self.relation(relation_URD)
        return table_URW

    def forward(
        self, edges: Edges, x_BND: Tensor | None, relation_BRW: Tensor, starts: Starts, boundary_BD: Tensor
    ) -> Tensor:
        """New states, (B, N, D). The boundary is weight · `boundary_BD` at each start of a query and zero elsewhere.

        No `x_BND` means the initial states, which are the boundary: most of them zero, which saves most of the work.
        """
        if x_BND is None and ALGEBRAS[self.algebra].bilinear:
            return first_layer(edges, relation_BRW, starts, boundary_BD, self.weights(), self.algebra)
        if x_BND is None:
            x_BND = starts.spread(edges.num_nodes, boundary_BD)
        if can_fuse(x_BND, self.algebra):
            which_B = torch.arange(len(starts)) if len(relation_BRW) > 1 else None
            stage = self.stage(relation_BRW, x_BND.new_empty(x_BND.shape))
            return layers_forward(edges, x_BND, [stage], which_B, starts, boundary_BD, self.algebra)
        if can_train_fused(x_BND, relation_BRW, self.algebra):
            return layer_with_gradients(edges, x_BND, relation_BRW, starts, boundary_BD, self.weights(), self.algebra)
        return self.plain(edges, x_BND, relation_BRW, starts, boundary_BD)

    def plain(self, edges: Edges, x_BND: Tensor, relation_BRW: Tensor, starts: Starts, boundary_BD: Tensor) -> Tensor:
        """The definition, in torch: what every faster path must agree with."""
        agg_BND = propagate(edges, x_BND, relation_BRW, self.algebra)
        agg_BND = agg_BND.index_put_((starts.query_S, starts.node_S), starts.rows(boundary_BD), accumulate=True)
        # W [x ; agg] without the concatenation.
        weight_x, weight_agg = self.linear.weight.split(self.dim, dim=1)
        hidden_BND = F.linear(x_BND, weight_x, self.linear.bias) + F.linear(agg_BND, weight_agg)
        return x_BND + F.relu(self.norm(hidden_BND))

    def stage(self, table_URW: Tensor, out_BND: Tensor) -> Stage:
        """This layer as one of those that a single native call goes through, without gradients."""
        return Stage(table_URW, self.weights(), out_BND)

    def weights(self) -> LayerWeights:
        """All parameters but those of the relations."""
        linear, norm = self.linear, self.norm  # looked up once: a module finds its attributes slowly
        return LayerWeights(linear.weight, linear.bias, norm.weight, norm.bias, norm.eps)

    def extra_repr(self) -> str:
        return f"{self.dim}, {self.algebra!r}"
