"""`gamma demo`: the bundled graph and weights, a few predictions by name, and what to try next."""

from __future__ import annotations

from importlib.resources import as_file, files


def demo() -> None:
    """Find facts that were held out of a small graph of countries."""
