"""What the machine lacks: memory, room on the disk, the right to write, a place. One line, wherever it happened."""

from __future__ import annotations

import errno

# A disk that is full, or over its quota; a place that can't be written (or was closed); a disk that fails.
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM, errno.EBADF)
# A place that is not what a path says: a file where a folder is wanted, a name that is too long, too many open files.
PLACE = (
    errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO, errno.ENODEV,
    errno.EBUSY, errno.ETXTBSY, errno.EMFILE, errno.ENFILE,
)  # fmt: skip
# How libraries say that they got no memory, where they raise something else than MemoryError.
NO_MEMORY = (
    "not enough memory", "can't allocate memory", "cannot allocate memory", "failed to map segment", "out of memory",
    "std::bad_alloc", "can't start new thread", "unable to mmap",
)  # fmt: skip


def shortage(error: BaseException) -> str | None:
    """The sentence for the user, or None where the error is of another kind: then it is ours to mend."""
    if isinstance(error, OSError) and (error.errno in DISK or (error.errno in PLACE and error.filename)):
        where = f" {str(error.filename)[:200]}" if error.filename else ""
        reason = "standard output is closed" if error.errno == errno.EBADF else error.strerror
        return f"can't go on: {reason}{where}. What was finished is whole; mend that and run the command again"
    text = str(error).lower()
    is_memory = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    if is_memory or (isinstance(error, RuntimeError | ImportError | OSError) and any(w in text for w in NO_MEMORY)):
        return "not enough memory. What was finished is whole; give less --memory, a smaller graph, or a larger machine"
    return None
