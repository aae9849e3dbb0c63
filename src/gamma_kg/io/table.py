"""Columns as a data frame of the library that a user works with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gamma_kg.errors import ConfigError, did_you_mean

LIBRARIES = ("polars", "pandas")


def table(columns: Mapping[str, Sequence[Any]], library: str) -> Any:
    """A polars or pandas data frame with these columns."""
    if library == "polars":
        import polars

        return polars.DataFrame(dict(columns), strict=False)
    if library == "pandas":
        import pandas

        return pandas.DataFrame(dict(columns))
    raise ConfigError(f"no library is named {library!r}{did_you_mean(library, LIBRARIES)}; there are polars and pandas")
