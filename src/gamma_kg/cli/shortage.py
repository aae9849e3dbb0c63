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
