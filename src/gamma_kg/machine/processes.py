"""Several processes under torchrun: who am I, and how do results come together. One process needs none of this."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, TypeVar

import torch.distributed as dist

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among `world`; `start` joins the others when torchrun started us."""

    rank: int = 0
    world: int = 1

    @classmethod
    def start(cls) -> Processes:
        world = int(os.environ.get("WORLD_SIZE", "1"))
        if world == 1 or not dist.is_available():
            return cls()
        if not dist.is_initialized():
            dist.init_process_group("gloo")
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def gather(self, value: T) -> list[T]:
        """The values of all processes, in the order of their ranks, at every process."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value)
        return values

    def from_first(self, value: T) -> T:
        """The value of the first process, at every process."""
        if self.world == 1:
            return value
        box: list[Any] = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]  # type: ignore[no-any-return]

    def stop(self) -> None:
        if self.world > 1 and dist.is_initialized():
            leave_group()


def leave_group() -> None:
    """Take leave of the other processes, after the last word with them.

    gloo's own thread lets go of the tensors of the last exchange a little after we got the result, and needs the
    interpreter for it. Destroying the group waits for that thread and holds the interpreter: one in ten runs hung here
    (torch 2.13). A sleeping thread does not hold it.
    """
    time.sleep(0.2)
    dist.destroy_process_group()
