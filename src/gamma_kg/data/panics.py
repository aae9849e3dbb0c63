"""polars prints a panic of its own on descriptor 2 before Python hears of it; here that print is held back.

What was written there by anybody else comes out afterwards.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

PANIC = b"panicked at"


@contextmanager
def panics_held_back() -> Iterator[None]:
    """While this lasts, a panic is an exception and nothing else."""
    # Python was started without a stderr: descriptor 2 may be any file by now, and must be left alone.
    if sys.__stderr__ is None:
        yield
        return
    with tempfile.TemporaryFile() as held:
        _flush()
        stderr = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            _flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            text = held.read()
            if PANIC not in text:
                os.write(2, text)


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()
