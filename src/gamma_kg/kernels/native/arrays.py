"""Tensors as the native module takes them: dense numpy views of one number type; it checks the shapes itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

AnyArray = NDArray[Any]


def array(name: str, tensor: Tensor, dtype: torch.dtype) -> AnyArray:
    """A dense view, or a dense copy; the array keeps its memory alive."""
    if tensor.dtype != dtype or not tensor.is_cpu:
        raise ValueError(f"{name}: wanted {dtype} on the CPU, found {shown(tensor)}")
    return np.asarray(tensor.detach().contiguous().numpy())


def result(name: str, tensor: Tensor, dtype: torch.dtype) -> AnyArray:
    """A view of a tensor that is written: a copy would not do."""
    if not tensor.is_contiguous():
        raise ValueError(f"{name}: the result must be dense, found strides {tensor.stride()}")
    return array(name, tensor, dtype)


def maybe(name: str, tensor: Tensor | None, dtype: torch.dtype) -> AnyArray | None:
    """The same of a tensor that may be missing."""
    return None if tensor is None else array(name, tensor, dtype)


def shown(tensor: Tensor) -> str:
    """Shape, type and place of a tensor, for messages."""
    return f"{tuple(tensor.shape)} {tensor.dtype} on {tensor.device}"
