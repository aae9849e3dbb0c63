"""One relational layer, used for relations and for entities (docs/model.md §3).

    agg_u = boundary_u + Σ over edges (u, r, v) of f_r(x_v)
    out_u = x_u + ReLU(LayerNorm(W [x_u ; agg_u] + b))

B queries, N nodes, R edge types, D channels, W width of a relation vector.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.aggregation import AGGREGATIONS
from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.parameters import LayerWeights


class RelationalLayer(nn.Module):
    """Propagation with one message function, then a linear map, normalisation, ReLU and a residual.

    With `num_types` the layer owns a vector per edge type (relation graph). Without, it projects the relation
    states it is given to vectors for its message function (entity graph).
    """

    def __init__(self, dim: int, algebra: str, num_types: int | None = None, aggregation: str = "sum") -> None:
        super().__init__()
        self.dim, self.algebra, self.aggregation = dim, algebra, aggregation
        width = int(ALGEBRAS[algebra].relation_width * dim)
        self.relation: nn.Module
        if num_types is None:
            self.relation = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, width))
        else:
            self.relation = nn.Embedding(num_types, width)
        self.linear = nn.Linear((1 + AGGREGATIONS[aggregation]) * dim, dim)
        self.norm = nn.LayerNorm(dim)

    def relation_table(self, relation_URD: Tensor | None) -> Tensor:
        """Relation vectors for the message function: (U, R, W), or (1, R, W) where the layer owns them."""
        if relation_URD is None:
            assert isinstance(self.relation, nn.Embedding)
            return self.relation.weight[None]
        if torch.is_grad_enabled() or not len(relation_URD):
            table_URW: Tensor = self.relation(relation_URD)
            return table_URW
        assert isinstance(self.relation, nn.Sequential)
        # One at a time: the same bits whichever relations are asked together, as in `kernels.score.by_query`. Written
        # out: the calls of modules would take as long as these small products.
        inner, inner_bias, outer, outer_bias = self.relation.parameters()
        rows = (torch.addmm(inner_bias, relation_RD, inner.T).relu_() for relation_RD in relation_URD)
        return torch.stack([torch.addmm(outer_bias, row_RD, outer.T) for row_RD in rows])

    def forward(
        self, edges: EdgeGroups, x_BND: Tensor | None, relation_BRW: Tensor, starts: Starts, boundary_BD: Tensor
    ) -> Tensor:
        """New states, (B, N, D). The boundary is weight · `boundary_BD` at each start of a query and zero elsewhere.

        No `x_BND` means the initial states, which are the boundary.
        """
        backend = backend_of(boundary_BD.device)
        return backend.layer(edges, x_BND, relation_BRW, starts, boundary_BD, self.weights())

    def weights(self) -> LayerWeights:
        """All parameters but those of the relations."""
        linear, norm = self.linear, self.norm  # looked up once: a module finds its attributes slowly
        return LayerWeights(
            linear.weight, linear.bias, norm.weight, norm.bias, norm.eps, self.algebra, self.aggregation
        )

    def extra_repr(self) -> str:
        return f"{self.dim}, {self.algebra!r}"
