"""One process or many under torchrun: who am I, and how do results come together. Nothing else uses torch.distributed.

Alone, a process is number 0 of 1, and every method is free.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from gamma_kg.errors import ConfigError, GammaError
from gamma_kg.machine.device import choose_device

if TYPE_CHECKING:
    import torch
    from torch import nn

T = TypeVar("T")


class LostProcessError(GammaError):
    """Another process of the same run has died."""


@dataclass(frozen=True)
class Processes:
    """This process among `count`; `join_processes` brings them together."""

    number: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def gather(self, value: T) -> list[T]:
        """The values of all processes, in the order of their numbers, at every process."""
        if self.count == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.count
        dist.all_gather_object(values, value)
        return values

    def from_first(self, value: T) -> T:
        """The value of the first process, at every process: clocks and disks differ, decisions must not."""
        if self.count == 1:
            return value
        import torch.distributed as dist

        box: list[Any] = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]  # type: ignore[no-any-return]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set at any process."""
        if self.count == 1:
            return flag
        import torch
        import torch.distributed as dist

        shared = torch.tensor(float(flag), device=_device_of_group())
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return bool(shared > 0)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over the processes."""
        if self.count == 1:
            return model
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model)

    def hold_gradients(self, model: nn.Module) -> Any:
        """A context in which gradients only add up locally, for accumulation."""
        return nullcontext() if self.count == 1 else model.no_sync()  # type: ignore[operator]


@contextmanager
def join_processes(device: str = "cpu", timeout_minutes: float = 30) -> Iterator[Processes]:
    """The processes that torchrun started, or just this one. One that dies is told in one line by the others.

    They talk by NCCL where they compute on a GPU, by gloo otherwise.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    import torch.distributed as dist

    number = int(os.environ["RANK"])
    has_gpu = choose_device(device).type == "cuda"
    if has_gpu:
        _use_own_gpu()
    # A process that is asked twice (a test, a command inside another) goes on in the group it is in.
    is_new = not dist.is_initialized()
    if is_new:
        dist.init_process_group("nccl" if has_gpu else "gloo", timeout=timedelta(minutes=timeout_minutes))
    try:
        yield Processes(number, count)
    except (RuntimeError, dist.DistBackendError) as error:
        if not _is_lost_peer(error):
            raise
        raise LostProcessError(
            f"process {number} of {count} lost contact with another one, which has probably died; see above what it "
            "said. What was saved is whole: start the same command again to go on (pretrain and finetune: --resume)"
        ) from error
    finally:
        if is_new:
            leave_group()


def leave_group() -> None:
    """Take leave of the other processes, after the last word with them.

    gloo's own thread lets go of the tensors of the last exchange a little after we got the result, and needs the
    interpreter for it. Destroying the group waits for that thread and holds the interpreter: one in ten runs hung here
    (torch 2.13). A sleeping thread does not hold it.
    """
    import torch.distributed as dist

    time.sleep(0.2)
    dist.destroy_process_group()


def _use_own_gpu() -> None:
    import torch

    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local >= torch.cuda.device_count():
        raise ConfigError(
            f"process {local} of this machine wants a GPU of its own, and torch sees {torch.cuda.device_count()}: "
            "start at most one process per GPU (torchrun --nproc_per_node), or leave out --device cuda"
        )
    torch.cuda.set_device(local)


def _device_of_group() -> torch.device:
    import torch
    import torch.distributed as dist

    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def _is_lost_peer(error: Exception) -> bool:
    text = str(error).lower()
    return any(word in text for word in ("connection", "gloo", "nccl", "socket", "timed out", "peer"))
