"""What a command tells a person beside its result: one line on stderr, none with `gamma --quiet`."""

from __future__ import annotations

import sys

from gamma_kg.io.shown import shown

_is_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether `say` says nothing; errors are not said but raised, so they are always heard."""
    global _is_quiet
    _is_quiet = quiet


def is_quiet() -> bool:
    return _is_quiet


def say(text: str) -> None:
    """One line on stderr; names in it can't steer the terminal."""
    if not _is_quiet:
        print(f"gamma: {shown(' '.join(text.split()))}", file=sys.stderr)
