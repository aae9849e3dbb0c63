"""The native module: whether it is there, which instruction set runs, and the process's memory.

The environment variable GAMMA_ISA forces an instruction set (avx512, avx2, neon, plain); `none` means plain torch.
GAMMA_REQUIRE_NATIVE=1 makes a missing or broken module an error, for machines that must not be slow: CI.
"""

from __future__ import annotations

import importlib
import math
import os
import warnings
from functools import cache
from types import ModuleType

from torch import Tensor

from gamma_kg.errors import ConfigError
from gamma_kg.machine.fork import compute_alone_after_fork

PAGE_BYTES = 2 << 20  # of a large page
# Rows gathered at random from less than this come through the processor's own tables of pages.
LARGE_BYTES = 2 << 20
INSTRUCTION_SETS = ("avx512", "avx2", "neon", "plain")
COST = "everything is computed by plain torch, some hundred times slower"


@cache
def module() -> ModuleType | None:
    """`gamma_kg._native`, or None where GAMMA_ISA=none, or where it can't be loaded: that is said once, aloud."""
    compute_alone_after_fork()
    wanted = os.environ.get("GAMMA_ISA", "")
    if wanted == "none":
        return None
    try:
        native = importlib.import_module("gamma_kg._native")
    except ImportError as error:
        _say_missing(error)
        return None
    if wanted and (wanted not in INSTRUCTION_SETS or not native.use_isa(wanted)):
        choice = [name for name in INSTRUCTION_SETS if native.use_isa(name)]
        raise ConfigError(f"GAMMA_ISA={wanted} can't run here; this machine has {', '.join(choice)} or none")
    return native


def _say_missing(error: ImportError) -> None:
    if isinstance(error, ModuleNotFoundError) and error.name == "gamma_kg._native":
        reason = "it was not built: install gamma-kg with a C++ compiler at hand"
    else:
        reason = f"it is there but can't be loaded ({error}): install gamma-kg again"
    if os.environ.get("GAMMA_REQUIRE_NATIVE", "0") not in ("", "0"):
        raise ConfigError(
            f"GAMMA_REQUIRE_NATIVE is set, and the native engine of gamma is missing; {reason}"
        ) from error
    warnings.warn(
        f"the native engine of gamma is missing, so {COST}; {reason}. GAMMA_ISA=none says that this is meant.",
        RuntimeWarning,
        stacklevel=4,
    )


def describe() -> str:
    """One line for `gamma info`: what computes on this machine's CPU."""
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
    native.wish_large_pages(states.numpy())
    return states.view(*shape)


def loaded() -> ModuleType:
    """The module, for callers that have made sure of it."""
    native = module()
    if native is None:
        raise ConfigError("the native module is not available; install gamma-kg with a C++ compiler at hand")
    return native
