"""The native module: whether it is there, which instruction set runs, and checked calls into it.

`gamma_kg._native` takes addresses; every check of type, shape and layout is made here, at the border.
The environment variable GAMMA_ISA forces an instruction set (avx512, avx2, neon, plain); `none` means the torch path.
"""

from __future__ import annotations

import importlib
import math
import os
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import torch  # before _native: torch brings the OpenMP runtime that both then share
from torch import Tensor

from gamma_kg.errors import ConfigError, DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.algebra import ALGEBRAS

# The numbers under which the native code knows the algebras (graph.h).
ALGEBRA_IDS = {"real": 0, "complex": 1, "split-complex": 2, "dual": 3}
PAGE_BYTES = 2 << 20  # of a large page
# Rows gathered at random from less than this come through the processor's own tables of pages.
LARGE_BYTES = 2 << 20
INSTRUCTION_SETS = ("avx512", "avx2", "neon", "plain")


class EdgeArrays(NamedTuple):
    """The arrays of `Edges` in the order in which the operators take them."""

    node_ptr: Tensor
    group_type: Tensor
    group_ptr: Tensor
    neighbour: Tensor
    inverse: Tensor


@cache
def module() -> ModuleType | None:
    """`gamma_kg._native`, or None where it was not built or GAMMA_ISA=none."""
    wanted = os.environ.get("GAMMA_ISA", "")
    if wanted == "none":
        return None
    try:
        native = importlib.import_module("gamma_kg._native")
    except ImportError:
        return None
    if wanted and (wanted not in INSTRUCTION_SETS or not native.use_isa(wanted)):
        choice = [name for name in INSTRUCTION_SETS if native.use_isa(name)]
        raise ConfigError(f"GAMMA_ISA={wanted} can't run here; this machine has {', '.join(choice)} or none")
    return native


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def is_available() -> bool:
    """Whether the native module is there; torch.compile takes the answer as given."""
    return module() is not None


def describe() -> str:
    """One line for `gamma info`: the path that propagation takes on this machine."""
    native = module()
    if native is None:
        return "plain torch (native module not built or switched off: slow)"
    return f"native, {native.isa()}, {'OpenMP' if native.has_threads() else 'one thread'}"


def retain_freed_memory() -> bool:
    """Let the process keep memory it frees, for programs that take the same large blocks again and again: training.

    Without it a good part of a step goes into page faults. Whether the system's allocator could be asked.
    """
    native = module()
    return native is not None and bool(native.retain_freed_memory())


def release_freed_memory() -> None:
    """Hand all freed memory back to the system now, where its allocator can be asked."""
    native = module()
    if native is not None:
        native.release_freed_memory()


def empty_states(like: Tensor, *shape: int) -> Tensor:
    """A tensor to be written, on large pages where it is large: its rows will be gathered at random."""
    native, count = module(), math.prod(shape)
    if native is None or like.device.type != "cpu" or count * like.element_size() < LARGE_BYTES:
        return like.new_empty(*shape)
    # Only whole large pages can be had, so the states begin at one.
    room = like.new_empty(count + PAGE_BYTES // like.element_size())
    start = -room.data_ptr() % PAGE_BYTES // like.element_size()
    states = room[start : start + count]
    native.wish_large_pages(states.data_ptr(), count * like.element_size())
    return states.view(*shape)


def supports(x: Tensor, relation: Tensor, algebra: str) -> bool:
    """Whether the native path can take these: a bilinear algebra, on the CPU, float32 or float64, both alike."""
    return (
        x.dtype in _DTYPES and relation.dtype == x.dtype and x.is_cpu and ALGEBRAS[algebra].bilinear and is_available()
    )


def require(x: Tensor, relation: Tensor, algebra: str) -> None:
    """Refuse what the native path can't take."""
    if not supports(x, relation, algebra):
        raise ValueError(f"no native path for {algebra} with {shown(x)} and {shown(relation)}")


_DTYPES = (torch.float32, torch.float64)


_graphs: weakref.WeakKeyDictionary[Edges, Any] = weakref.WeakKeyDictionary()


def graph_of(edges: Edges) -> Any:
    """The native view of `edges`, looked through once for ids outside their range and kept as long as they live."""
    found = _graphs.get(edges)
    if found is None:
        found = graph_at(_arrays(edges))
        if not _loaded().is_sound(found, edges.num_groups, edges.num_edges):
            raise DataError(f"{edges!r}: pointers or ids are out of range")
        _graphs[edges] = found
    return found


def arrays(edges: Edges) -> EdgeArrays:
    """The arrays of `edges`, found sound."""
    if not torch.compiler.is_compiling():
        graph_of(edges)
    return _arrays(edges)


def _arrays(edges: Edges) -> EdgeArrays:
    return EdgeArrays(edges.node_ptr, edges.group_type, edges.group_ptr, edges.neighbour, edges.inverse)


def graph_at(edges: EdgeArrays) -> Any:
    """The native view of edge arrays; valid as long as they live."""
    for name, array, dtype in zip(EdgeArrays._fields, edges, _EDGE_DTYPES, strict=True):
        if array.dtype != dtype or array.dim() != 1 or not array.is_contiguous() or array.device.type != "cpu":
            raise DataError(
                f"edge array {name}: wanted one dimension of {dtype} on the CPU, dense; found {shown(array)}"
            )
    num_nodes, num_types = edges.node_ptr.numel() - 1, edges.inverse.numel()
    return _loaded().Graph(num_nodes, num_types, [array.data_ptr() for array in edges])


def are_below(ids: Tensor, limit: int) -> bool:
    """Whether all of these int64 ids are in 0 .. limit - 1."""
    return bool(_loaded().are_below(ids.data_ptr(), ids.numel(), limit))


def are_starts(node_S: Tensor, offset_B1: Tensor, num_nodes: int) -> bool:
    """Whether offsets go up to the number of starts, and the nodes of each query are ascending and inside the graph."""
    return bool(_loaded().are_starts(node_S.data_ptr(), len(node_S), offset_B1.data_ptr(), len(offset_B1), num_nodes))


def renumber(edges: EdgeArrays, place: Tensor, result: EdgeArrays) -> None:
    """Write the new number of each node to `place`, the edges under these numbers to `result` (all but inverses)."""
    _loaded().renumber(graph_at(edges), [place.data_ptr(), *(array.data_ptr() for array in result[:4])])


_EDGE_DTYPES = (torch.int64, torch.int32, torch.int64, torch.int32, torch.int32)


def propagate_forward(graph: Any, x_BND: Tensor, relation_BRD: Tensor, algebra: str) -> Tensor:
    """Sum of messages at every node; see `gamma_kg.kernels.propagate`. The caller has asked `supports`."""
    native, x, relation, stride = _checked(graph, x_BND, relation_BRD, algebra)
    out = torch.empty_like(x)
    threads, (B, _, D) = torch.get_num_threads(), x.shape
    _typed(native, "propagate", x)(
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
    native, x, relation, stride = _checked(graph, x_BND, relation_BRD, algebra)
    gradient = gradient_BND.contiguous()
    if gradient.shape != x.shape or gradient.dtype != x.dtype:
        raise ValueError(f"gradient {shown(gradient)} does not fit states {shown(x)}")
    grad_x = torch.empty_like(x) if add_to is None else add_to
    if grad_x.shape != x.shape or grad_x.dtype != x.dtype or not grad_x.is_contiguous():
        raise ValueError(f"gradient to add to: wanted dense {shown(x)}, found {shown(grad_x)}")
    threads, (B, _, D), R = torch.get_num_threads(), x.shape, relation.shape[1]
    parts = native.backward_parts(graph, B, D, threads)
    tables = x.new_zeros(B, parts, R, D)
    _typed(native, "propagate_backward", x)(
        graph, ALGEBRA_IDS[algebra], B, D,
        gradient.data_ptr(), relation.data_ptr(), stride, grad_x.data_ptr(), parts, threads,
        x.data_ptr(), tables.data_ptr(), add_to is not None,
    )  # fmt: skip
    if stride == 0:
        return grad_x, tables.view(B * parts, R, D).sum(0, keepdim=True)
    return grad_x, tables[:, 0] if parts == 1 else tables.sum(1)


def run_layers(
    graph: Any,
    algebra: str,
    x_BND: Tensor | None,
    which_B: Tensor | None,
    starts: Starts,
    boundary_BD: Tensor,
    stages: Sequence[Sequence[Tensor]],
    eps: Sequence[float],
    saved: Sequence[Tensor],
) -> None:
    """Fused layers, one after the other; `gamma_kg.kernels.fused` has checked what it hands on.

    A stage: relation tables, weight, bias, norm weight, norm bias, result. `saved`: nothing, or what a backward pass
    wants of a single layer: aggregates, normalised values, scales.
    """
    _typed(_loaded(), "layers", boundary_BD)(
        graph, ALGEBRA_IDS[algebra], *boundary_BD.shape, 0 if x_BND is None else x_BND.data_ptr(),
        0 if which_B is None else which_B.data_ptr(), starts.offset_B1.data_ptr(), starts.node_S.data_ptr(),
        0 if starts.weight_S is None else starts.weight_S.data_ptr(), boundary_BD.data_ptr(),
        [[tensor.data_ptr() for tensor in stage] for stage in stages], eps, torch.get_num_threads(),
        *([tensor.data_ptr() for tensor in saved] or (0, 0, 0)),
    )  # fmt: skip


def update_backward(
    gradient_BND: Tensor,
    normalised_BND: Tensor,
    scale_BN: Tensor,
    weight: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Backward of a layer but for propagation: gradients of the linear result, of x (with the residual) and of agg.

    The fourth are parts (units, 3, D) of the gradients of norm weight, norm bias and bias, to be summed.
    """
    native, threads, D = _loaded(), torch.get_num_threads(), gradient_BND.shape[-1]
    rows = gradient_BND.numel() // max(D, 1)
    units = 1 if threads == 1 else max(1, min(4 * threads, rows // 256))
    results = tuple(torch.empty_like(gradient_BND) for _ in range(3))
    sums = gradient_BND.new_zeros(units, 3, D)
    dense = gradient_BND, normalised_BND, scale_BN, weight, norm_weight, norm_bias, *results, sums
    if not all(tensor.is_contiguous() and tensor.dtype == gradient_BND.dtype for tensor in dense):
        raise ValueError("update_backward wants dense tensors of one type")
    _typed(native, "update_backward", gradient_BND)(rows, D, *(tensor.data_ptr() for tensor in dense), units, threads)
    linear, grad_x, grad_agg = results
    return linear, grad_x, grad_agg, sums


def run_score(
    *,
    sizes: tuple[int, int, int, int, int, int],
    states: Sequence[Tensor],
    keys: Sequence[Tensor],
    weight_BK: Tensor | None,
    dense: Sequence[Tensor],
    temperature: float,
    mix: float,
    out_bias: float,
    results: tuple[Tensor, Tensor],
) -> None:
    """Scores of all candidates; `gamma_kg.kernels.head` has checked what it hands on.

    `sizes`: B, C, K, D, A, H. `keys`: nothing, or key weights, their part from the query, context. `dense`: hidden
    weights, their part from the query, hidden bias, out weight.
    """
    hidden, of_query, hidden_bias, out_weight = dense
    everything = (*keys, *dense, *results, *states)
    if any(tensor.dtype != results[0].dtype for tensor in everything):
        raise ValueError("the score wants tensors of one type")
    _typed(_loaded(), "score", results[0])(
        list(sizes), [z.data_ptr() for z in states], states[0].stride(0),
        *([tensor.data_ptr() for tensor in keys] or (0, 0, 0)), temperature, mix,
        0 if weight_BK is None else weight_BK.data_ptr(), hidden.data_ptr(), of_query.data_ptr(),
        hidden_bias.data_ptr(), out_weight.data_ptr(), out_bias,
        *(result.data_ptr() for result in results), torch.get_num_threads(),
    )  # fmt: skip


def _checked(graph: Any, x_BND: Tensor, relation_BRD: Tensor, algebra: str) -> tuple[ModuleType, Tensor, Tensor, int]:
    native = _loaded()
    num_nodes, num_types = graph.num_nodes, graph.num_types
    if x_BND.dim() != 3 or x_BND.shape[1] != num_nodes:
        raise ValueError(f"states: wanted (B, {num_nodes}, D), found {shown(x_BND)}")
    B, _, D = x_BND.shape
    if relation_BRD.dim() != 3 or relation_BRD.shape[0] not in (1, B) or relation_BRD.shape[1:] != (num_types, D):
        raise ValueError(f"relations: wanted ({B} or 1, {num_types}, {D}), found {shown(relation_BRD)}")
    if ALGEBRAS[algebra].halves and D % 2:
        raise ValueError(f"{algebra} splits the channels in halves: {D} is odd")
    stride = 0 if relation_BRD.shape[0] == 1 else num_types * D
    return native, x_BND.contiguous(), relation_BRD.contiguous(), stride


def _typed(native: ModuleType, name: str, x: Tensor) -> Callable[..., None]:
    """The kernel `name` for the number type of x."""
    kernel: Callable[..., None] = getattr(native, f"{name}_{'f64' if x.dtype == torch.float64 else 'f32'}")
    return kernel


def _loaded() -> ModuleType:
    native = module()
    if native is None:
        raise ConfigError("the native module is not available; install gamma-kg with a C++ compiler at hand")
    return native


def shown(tensor: Tensor) -> str:
    """Shape, type and place of a tensor, for messages."""
    return f"{tuple(tensor.shape)} {tensor.dtype} on {tensor.device}"
