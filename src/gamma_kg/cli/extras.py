"""What only some users install: a command that needs it says how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gamma_kg.errors import ConfigError


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """Around imports of packages that the extra brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "gamma_kg":
            raise
        raise ConfigError(f"{error.name} is not installed: pip install 'gamma-kg[{extra}]'") from error
