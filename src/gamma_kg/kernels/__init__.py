"""Propagation: the inner loop. `propagate` picks the native path where there is one, else the plain torch path."""

from __future__ import annotations

from torch import Tensor

from gamma_kg.graph.edges import Edges
from gamma_kg.kernels.native import supports
from gamma_kg.kernels.ops import propagate_native
from gamma_kg.kernels.reference import propagate_reference


def propagate(edges: Edges, x_BND: Tensor, relation_BRW: Tensor, algebra: str) -> Tensor:
    """Σ over edges (u, r, v) of f_r(x_v), added at u; shape (B, N, D). Relation tables may be shared (B = 1)."""
    if supports(x_BND, relation_BRW, algebra):
        return propagate_native(edges, x_BND, relation_BRW, algebra)
    return propagate_reference(edges, x_BND, relation_BRW, algebra)
