"""One process or many: what the loop asks of torch.distributed, and nothing else of it is used elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from gamma_kg.machine.processes import leave_group
from gamma_kg.training.errors import TrainingError


@dataclass(frozen=True)
class Ranks:
    """This process among its peers. Alone it is rank 0 of 1, and every method is free."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over the ranks."""
        return model if self.size == 1 else DistributedDataParallel(model)

    def hold_gradients(self, model: nn.Module) -> Any:
        """A context in which gradients only add up locally, for accumulation."""
        return model.no_sync() if isinstance(model, DistributedDataParallel) else nullcontext()

    def agree(self, *values: float) -> list[float]:
        """The first rank's values, on every rank: clocks differ, decisions must not."""
        if self.size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=_device())
        dist.broadcast(shared, 0)
        return [float(value) for value in shared]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        if self.size == 1:
            return flag
        shared = torch.tensor(float(flag), device=_device())
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return bool(shared > 0)

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, on every rank."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value)
        return found


@contextmanager
def join_ranks(timeout_minutes: float = 30) -> Iterator[Ranks]:
    """The ranks that torchrun started, or just this process. A peer that dies is told in one line."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Ranks()
        return
    rank = int(os.environ["RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(minutes=timeout_minutes))
    try:
        yield Ranks(rank, size)
    except (RuntimeError, dist.DistBackendError) as error:
        if not _is_lost_peer(error):
            raise
        raise TrainingError(
            f"rank {rank} of {size} lost contact with another rank, which has probably died; see above what it said. "
            "The last checkpoint is whole: start the same command with --resume"
        ) from error
    finally:
        leave_group()


def _is_lost_peer(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in ("connection", "gloo", "nccl", "socket", "timed out", "peer"))


def _device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
