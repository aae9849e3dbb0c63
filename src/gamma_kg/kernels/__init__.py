"""The inner loops: message functions, propagation, layers and scores, and the backends that compute them."""

from __future__ import annotations

from torch import Tensor

from gamma_kg.graph.edges import EdgeGroups
from gamma_kg.kernels.backend import Backend, backend_of

__all__ = ["Backend", "backend_of", "propagate"]


def propagate(edges: EdgeGroups, x_BND: Tensor, relation_BRW: Tensor, algebra: str) -> Tensor:
    """Σ over edges (u, r, v) of f_r(x_v), added at u; shape (B, N, D), by the backend of the states' device."""
    return backend_of(x_BND.device).propagate(edges, x_BND, relation_BRW, algebra)
