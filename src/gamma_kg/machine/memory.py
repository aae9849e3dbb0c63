"""Memory budgets: what a user writes ("4GB"), and what is free now."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gamma_kg.errors import ConfigError
from gamma_kg.machine.address_space import room

if TYPE_CHECKING:
    import torch

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_memory(text: str | int) -> int:
    """Bytes meant by "800MB", "4G" or a plain number."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise ConfigError(f"memory: wanted a size such as 800MB or 4GB, got {text!r}")
    return int(float(match[1]) * UNITS[match[2].lower()])


def free_memory() -> int:
    """Bytes that can be had without swapping; a careful guess where the system does not tell."""
    left = room()
    return _machine_memory() if left is None else min(left, _machine_memory())


def _machine_memory() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) << 10, _container_limit())
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def _container_limit() -> int:
    """What a control group leaves of its limit: inside a container the host's free memory says nothing."""
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        return max(int(limit) - int(used), 64 << 20)
    except (OSError, ValueError):
        return 1 << 62


def budget(memory: str | int | None, device: torch.device | None = None) -> int:
    """The budget asked for, or a quarter of what is free; on a GPU, of what is free there."""
    if memory is not None:
        return parse_memory(memory)
    if device is not None and device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0]) // 4
    return free_memory() // 4


def peak_memory_mb() -> float:
    """Largest resident size of this process so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)
