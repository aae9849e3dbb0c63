"""What a command tells a person beside its result: one line on stderr, none with `gamma --quiet`."""

from __future__ import annotations

import sys
from shutil import get_terminal_size

from gamma_kg.io.shown import shown

CLEAR_LINE = "\x1b[2K\r"
_is_quiet = False
_is_said_for_now = False


def be_quiet(quiet: bool) -> None:
    """Whether `say` says nothing; errors are not said but raised, so they are always heard."""
    global _is_quiet
    _is_quiet = quiet


def is_quiet() -> bool:
    return _is_quiet


def say(text: str) -> None:
    """One line on stderr; names in it can't steer the terminal."""
    if not _is_quiet:
        unsay()
        print(f"gamma: {shown(' '.join(text.split()))}", file=sys.stderr)


def say_for_now(text: str) -> None:
    """What is being done, where a person looks on: before libraries are loaded, until `unsay` or the next line."""
    global _is_said_for_now
    if not _is_quiet and sys.stderr.isatty():
        line = f"gamma: {shown(' '.join(text.split()))} …"[: get_terminal_size().columns - 1]
        print(line, end="\r", file=sys.stderr, flush=True)
        _is_said_for_now = True


def unsay() -> None:
    """Takes back what was said for now."""
    global _is_said_for_now
    if _is_said_for_now:
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
        _is_said_for_now = False
