"""Ids, offsets and starts that go to the native code: it reads where they point, so they are looked through first."""

from __future__ import annotations

import torch
from torch import Tensor

from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.native.arrays import AnyArray, array
from gamma_kg.kernels.native.loading import loaded


def checked_ids(name: str, ids: Tensor, count: int, limit: int) -> AnyArray:
    """So many ids below the limit, as the native code takes them."""
    found = array(name, ids, torch.int64)
    if ids.shape != (count,) or not loaded().are_below(found, limit):
        raise ValueError(f"{name}: wanted {count} ids below {limit}, found {ids.tolist()[:8]} {ids.dtype}")
    return found


def checked_offsets(name: str, offset_B1: Tensor, total: int) -> AnyArray:
    """Numbers that divide `total` things, as the native code takes them."""
    if offset_B1.dtype != torch.int64 or not loaded().are_offsets(array(name, offset_B1, torch.int64), total):
        raise ValueError(f"{name}: wanted numbers that rise from 0 to {total}, found {offset_B1.tolist()[:8]}")
    return array(name, offset_B1, torch.int64)


def checked_starts(
    starts: Starts, count: int, num_nodes: int, dtype: torch.dtype
) -> tuple[AnyArray, AnyArray, AnyArray | None]:
    """Offsets, nodes and weights of the starts of so many queries, as the native code takes them."""
    node_S, offset_B1, weight_S = starts.node_S, starts.offset_B1, starts.weight_S
    if (
        len(starts) != count
        or node_S.dtype != torch.int64
        or offset_B1.dtype != torch.int64
        or not (weight_S is None or weight_S.shape == node_S.shape)
        or not loaded().are_starts(
            array("starts", node_S, torch.int64), array("starts", offset_B1, torch.int64), num_nodes
        )
    ):
        raise ValueError(
            f"starts: wanted those of {count} queries, each with ascending distinct ids below {num_nodes}, found "
            f"{starts!r}: {node_S.tolist()[:8]} {node_S.dtype}"
        )
    weights = None if weight_S is None else array("weights of the starts", weight_S.detach().to(dtype), dtype)
    return array("starts", offset_B1, torch.int64), array("starts", node_S, torch.int64), weights
