"""What the machine has run out of: memory, room on the disk, the right to write. One line, wherever it happened."""

from __future__ import annotations

import errno

# A disk that is full, or over its quota; a place that can't be written; a disk that fails.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM)
# How libraries say that they got no memory, where they raise something else than MemoryError.
NO_MEMORY = (
    "not enough memory", "can't allocate memory", "cannot allocate memory", "failed to map segment", "out of memory",
    "std::bad_alloc", "can't start new thread", "unable to mmap",
)  # fmt: skip

LEAST_BYTES = 1280 << 20


def shortage(error: BaseException) -> str | None:
    """The sentence for the user, or None where the error is of another kind: then it is ours to mend."""
    if isinstance(error, OSError) and error.errno in DISK:
        where = f" {error.filename}" if error.filename else ""
        return f"can't go on: {error.strerror}{where}. What was finished is whole; mend that and run the command again"
    text = str(error).lower()
    is_memory = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    if is_memory or (isinstance(error, RuntimeError | ImportError | OSError) and any(w in text for w in NO_MEMORY)):
        return "not enough memory. What was finished is whole; give less --memory, a smaller graph, or a larger machine"
    return None


def too_little() -> str | None:
    """The sentence for a limit of address space under which torch does not even load: its own start would abort."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= LEAST_BYTES:
        return None
    return f"address space is limited to {limit >> 20:,} MB (ulimit -v); gamma needs {LEAST_BYTES >> 20:,} MB to start"
