"""Propagation by the native code, forward and backward.

B queries, N nodes, R edge types, D channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.native.arrays import array, result, shown
from gamma_kg.kernels.native.loading import loaded
from gamma_kg.machine.threads import engine_threads

# The numbers under which the native code knows the algebras (graph.h).
ALGEBRA_IDS = {"real": 0, "complex": 1, "split-complex": 2, "dual": 3}
_DTYPES = (torch.float32, torch.float64)


def supports(x: Tensor, relation: Tensor, algebra: str) -> bool:
    """Whether the native code can take these: an algebra it knows, on the CPU, float32 or float64, both alike."""
    return x.dtype in _DTYPES and relation.dtype == x.dtype and x.is_cpu and algebra in ALGEBRA_IDS


def require(x: Tensor, relation: Tensor, algebra: str) -> None:
    """Refuse what the native code can't take."""
    if not supports(x, relation, algebra):
        raise ValueError(f"no native code for {algebra} with {shown(x)} and {shown(relation)}")


def require_channels(algebra: str, channels: int) -> None:
    """Refuse channels that can't be split into the components of the algebra."""
    components = ALGEBRAS[algebra].components
    if channels % components:
        raise ValueError(f"{algebra} splits the channels into {components} parts: {channels} channels can't be")


def propagate_forward(graph: Any, x_BND: Tensor, relation_BRD: Tensor, algebra: str) -> Tensor:
    """Sum of messages at every node; see `gamma_kg.kernels.propagate`. The caller has asked `supports`."""
    dtype, out_BND = x_BND.dtype, torch.empty_like(x_BND, memory_format=torch.contiguous_format)
    require_channels(algebra, x_BND.shape[-1])
    loaded().propagate(
        graph, ALGEBRA_IDS[algebra], array("states", x_BND, dtype), array("relations", relation_BRD, dtype),
        result("result", out_BND, dtype), engine_threads(),
    )  # fmt: skip
    return out_BND


def propagate_backward(
    graph: Any,
    gradient_BND: Tensor,
    x_BND: Tensor,
    relation_BRD: Tensor,
    algebra: str,
    add_to: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradients of `propagate_forward` for x and relation; the former is added to `add_to` if that is given.

    The caller has asked `supports`.
    """
    dtype, threads, (B, _, D), R = x_BND.dtype, engine_threads(), x_BND.shape, relation_BRD.shape[1]
    require_channels(algebra, D)
    grad_x = torch.empty_like(x_BND, memory_format=torch.contiguous_format) if add_to is None else add_to
    tables = x_BND.new_zeros(B, loaded().backward_parts(graph, B, D, threads), R, D)
    loaded().propagate_backward(
        graph, ALGEBRA_IDS[algebra], array("gradient", gradient_BND, dtype), array("relations", relation_BRD, dtype),
        array("states", x_BND, dtype), result("gradient to add to", grad_x, dtype), result("tables", tables, dtype),
        add_to is not None, threads,
    )  # fmt: skip
    if len(relation_BRD) == 1:
        return grad_x, tables.flatten(0, 1).sum(0, keepdim=True)
    return grad_x, tables[:, 0] if tables.shape[1] == 1 else tables.sum(1)
