"""Standard input, output and error as whoever started the command left them: closed, full, or of another encoding."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


def mend_streams() -> None:
    """Gives a stream that was closed something to be, and one that can't write every character a way to do so.

    A closed one would be taken by the next file that is opened, and what libraries print would go into that. Remarks
    to nobody are dropped; results to nobody are an error when they are written, since the place can only be read.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # something that a test put in its place
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def forget(stream: TextIO) -> None:
    """Drops what could not be written: Python would try again when it ends, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
