"""A limit of address space (`ulimit -v`) or of data (`ulimit -d`): how much it leaves, and living with it.

Libraries that are not ours abort the process where an allocation fails (Rust does, and so do the threads of some), so
it is asked before, where much is about to be taken.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

LEAST_BYTES = 1280 << 20
# Where /proc/self/statm says how many pages count for a limit. What is only reserved counts as data too, maps of files
# do not.
TAKEN = {"RLIMIT_AS": 0, "RLIMIT_DATA": 5}
_ARENA_MAX = -8  # M_ARENA_MAX of glibc's mallopt


def limit(kind: str = "RLIMIT_AS") -> int | None:
    """The limit in bytes; None without one."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return None
    found = resource.getrlimit(getattr(resource, kind))[0]
    return None if found == resource.RLIM_INFINITY else found


def room() -> int | None:
    """How many bytes this process may still take; None without a limit, or where the system does not tell."""
    left = []
    for kind, field in TAKEN.items():
        most = limit(kind)
        if most is None:
            continue
        try:
            import resource

            pages = int(Path("/proc/self/statm").read_text().split()[field])
            left.append(max(0, most - pages * resource.getpagesize()))
        except (OSError, ValueError, LookupError):
            continue
    return min(left, default=None)


def too_little() -> str | None:
    """The sentence for a limit under which torch does not even load: its own start would abort."""
    most = limit()
    if most is None or most >= LEAST_BYTES:
        return None
    return f"address space is limited to {most >> 20:,} MB (ulimit -v); gamma needs {LEAST_BYTES >> 20:,} MB to start"


def spare() -> None:
    """Under a limit, all threads share one arena of malloc: else each reserves 64 MB, and polars alone starts ten.

    To be called before libraries start theirs.
    """
    if all(limit(kind) is None for kind in TAKEN):
        return
    try:
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    except (OSError, AttributeError):  # another C library: it reserves what it reserves
        return
