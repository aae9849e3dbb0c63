"""Finding names by their beginning, or nearly: a bisection over the names in alphabetical order, whatever their case.

Nothing here needs the names in memory: a name is asked for by its place in the order, a few dozen times a search.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import nearest
from gamma_kg.machine.fork import can_use_polars, need_polars

BATCH_NAMES = 500_000
# How many names around the place where a name would stand are compared letter by letter.
WINDOW = 200


def folded(name: str) -> str:
    """What two names that differ by case alone have in common."""
    return name.casefold()


def alphabetical(batches: Iterable[Sequence[str]]) -> NDArray[np.int64]:
    """Positions of the names in alphabetical order of their folded forms; polars sorts outside of Python."""
    import polars as pl

    if not can_use_polars():
        keys = [folded(name).encode() for batch in batches for name in batch]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    parts = [pl.Series([folded(name) for name in batch], dtype=pl.String) for batch in batches]
    whole = pl.concat(parts) if parts else pl.Series([], dtype=pl.String)
    need_polars("names in alphabetical order", int(whole.estimated_size()))
    return whole.arg_sort().to_numpy().astype(np.int64)


def in_batches(names: Sequence[str], size: int = BATCH_NAMES) -> Iterable[Sequence[str]]:
    """Slices of a long list of names."""
    return (names[start : start + size] for start in range(0, len(names), size))


class AlphabeticalOrder:
    """Names by their place in alphabetical order; `name_at(place)` gives one."""

    def __init__(self, size: int, name_at: Callable[[int], str]) -> None:
        self._size, self._name_at = size, name_at

    def starting_with(self, prefix: str, limit: int) -> list[str]:
        """The first names in alphabetical order that start so, in whatever case."""
        prefix = folded(prefix)
        found: list[str] = []
        for place in range(self._place_of(prefix), self._size):
            name = self._name_at(place)
            if len(found) == limit or not folded(name).startswith(prefix):
                break
            found.append(name)
        return found

    def in_any_case(self, name: str) -> list[str]:
        """The names that differ from this one by case alone, or not at all."""
        wanted = folded(name)
        found: list[str] = []
        for place in range(self._place_of(wanted), self._size):
            other = self._name_at(place)
            if folded(other) != wanted:
                break
            found.append(other)
        return found

    def near(self, name: str, limit: int) -> list[str]:
        """Names that look like this one, nearest first: among those with the same beginning."""
        wanted = folded(name)
        candidates: set[str] = set()
        # A slip of the pen further back leaves the beginning right; the shorter the beginning, the more is allowed.
        for length in {len(wanted), max(len(wanted) * 2 // 3, 1), max(len(wanted) // 3, 1)}:
            place = self._place_of(wanted[:length])
            candidates.update(map(self._name_at, range(max(place - WINDOW // 4, 0), min(place + WINDOW, self._size))))
        return nearest(name, sorted(candidates), limit)

    def _place_of(self, key: str) -> int:
        # Names are compared as UTF-8 bytes, as polars sorts them; code points come in the same order.
        return bisect_left(range(self._size), key, key=lambda place: folded(self._name_at(place)))
