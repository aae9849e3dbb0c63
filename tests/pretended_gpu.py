"""A GPU that is none: tensors that say they are on cuda:0 and are computed on the CPU, under a GPU's rules.

What computes on both devices at once is refused as a real GPU refuses it, and what is sent there is counted. So the way
of data through a program can be tested where there is no GPU; its speed and its rounding can't.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
ATEN = torch.ops.aten
# A real GPU takes indices from the CPU too, and copies between devices are what they are for.
INDEXING = (ATEN.index.Tensor, ATEN.index_put.default, ATEN.index_put_.default, ATEN._index_put_impl_.default)
MIXED = (*INDEXING, ATEN.copy_.default)


class OnGpu(Tensor):
    """A tensor that says it is on the GPU; `held` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> OnGpu:
        shape = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        # torch itself takes it for one without numbers: gradients on a cuda that is not there would end the program.
        made: OnGpu = Tensor._make_wrapper_subclass(cls, held.shape, **shape, dtype=held.dtype, device="meta")
        made.held = held
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return GPU

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} after the pretended GPU was taken away")

    def tolist(self) -> Any:
        return self.held.tolist()

    def numpy(self, **options: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy: use .cpu() first")

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"on the GPU: {self.held!r}"


class PretendedGpu(TorchDispatchMode):
    """Computes what is on the GPU; `sent` are the tensors that were sent there from the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, Tensor)]
        there = [one for one in tensors if isinstance(one, OnGpu)]
        wanted = kwargs.get("device")
        goes_there = bool(there) if wanted is None else torch.device(wanted).type == "cuda"
        if wanted is not None:
            kwargs["device"] = CPU
        elif func in MIXED:
            goes_there = isinstance(args[0], OnGpu)
            if there and not goes_there and func is not ATEN.copy_.default:
                raise RuntimeError(f"{func}: indices on the GPU into a tensor on the CPU")
        elif there and any(one.dim() for one in tensors if not isinstance(one, OnGpu)):
            raise RuntimeError(f"{func}: expected all tensors to be on the same device")
        if func is ATEN._to_copy.default and goes_there and not there:
            self.sent.append(args[0])
        own: dict[int, OnGpu] = {id(one.held): one for one in there}
        result = func(*tree_map(_held, args), **tree_map(_held, kwargs))
        if not goes_there or func is ATEN._local_scalar_dense.default:
            return result
        # What was changed in place stays the tensor that it was.
        return tree_map(lambda one: _there(one, own) if isinstance(one, Tensor) else one, result)


def _made(tensor: Callable[..., Tensor], data: Any, *, device: torch.device | None = None, **options: Any) -> Tensor:
    """`torch.tensor`, which looks past what computes in Python."""
    made = tensor(data, **options)
    return made if device is None else made.to(device)


def _there(held: Tensor, own: dict[int, OnGpu]) -> OnGpu:
    return own[id(held)] if id(held) in own else OnGpu(held)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, OnGpu) else value


@contextmanager
def pretended_gpu() -> Iterator[PretendedGpu]:
    """While it lasts torch finds one GPU."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    with pytest.MonkeyPatch.context() as patch, PretendedGpu() as gpu:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        patch.setattr(torch.cuda, "device_count", lambda: 1)
        patch.setattr(torch.cuda, "current_device", lambda: 0)
        patch.setattr(torch.cuda, "mem_get_info", lambda device=None: (1 << 30, 1 << 31))
        patch.setattr(torch.cuda, "_lazy_init", lambda: None)  # asked before anything is computed on cuda
        patch.setattr(torch, "tensor", partial(_made, torch.tensor))
        try:
            yield gpu
        finally:
            torch.__future__.set_overwrite_module_params_on_conversion(False)
