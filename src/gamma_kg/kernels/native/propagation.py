"""Propagation by the native code, forward and backward: checked calls.

B queries, N nodes, R edge types, D channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gamma_kg.kernels.algebra import ALGEBRAS
from gamma_kg.kernels.native.loading import loaded, shown, typed

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


def propagate_forward(graph: Any, x_BND: Tensor, relation_BRD: Tensor, algebra: str) -> Tensor:
    """Sum of messages at every node; see `gamma_kg.kernels.propagate`. The caller has asked `supports`."""
    x, relation, stride = _checked(graph, x_BND, relation_BRD, algebra)
    out = torch.empty_like(x)
    threads, (B, _, D) = torch.get_num_threads(), x.shape
    typed("propagate", x)(
        graph, ALGEBRA_IDS[algebra], B, D, x.data_ptr(), relation.data_ptr(), stride, out.data_ptr(), threads
    )  # fmt: skip
    return out


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
    x, relation, stride = _checked(graph, x_BND, relation_BRD, algebra)
    gradient = gradient_BND.contiguous()
    if gradient.shape != x.shape or gradient.dtype != x.dtype:
        raise ValueError(f"gradient {shown(gradient)} does not fit states {shown(x)}")
    grad_x = torch.empty_like(x) if add_to is None else add_to
    if grad_x.shape != x.shape or grad_x.dtype != x.dtype or not grad_x.is_contiguous():
        raise ValueError(f"gradient to add to: wanted dense {shown(x)}, found {shown(grad_x)}")
    threads, (B, _, D), R = torch.get_num_threads(), x.shape, relation.shape[1]
    parts = loaded().backward_parts(graph, B, D, threads)
    tables = x.new_zeros(B, parts, R, D)
    typed("propagate_backward", x)(
        graph, ALGEBRA_IDS[algebra], B, D,
        gradient.data_ptr(), relation.data_ptr(), stride, grad_x.data_ptr(), parts, threads,
        x.data_ptr(), tables.data_ptr(), add_to is not None,
    )  # fmt: skip
    if stride == 0:
        return grad_x, tables.view(B * parts, R, D).sum(0, keepdim=True)
    return grad_x, tables[:, 0] if parts == 1 else tables.sum(1)


def _checked(graph: Any, x_BND: Tensor, relation_BRD: Tensor, algebra: str) -> tuple[Tensor, Tensor, int]:
    num_nodes, num_types = graph.num_nodes, graph.num_types
    if x_BND.dim() != 3 or x_BND.shape[1] != num_nodes:
        raise ValueError(f"states: wanted (B, {num_nodes}, D), found {shown(x_BND)}")
    B, _, D = x_BND.shape
    if relation_BRD.dim() != 3 or relation_BRD.shape[0] not in (1, B) or relation_BRD.shape[1:] != (num_types, D):
        raise ValueError(f"relations: wanted ({B} or 1, {num_types}, {D}), found {shown(relation_BRD)}")
    if D % ALGEBRAS[algebra].components:
        raise ValueError(
            f"{algebra} splits the channels into {ALGEBRAS[algebra].components} parts: {D} channels can't be"
        )
    stride = 0 if relation_BRD.shape[0] == 1 else num_types * D
    return x_BND.contiguous(), relation_BRD.contiguous(), stride
