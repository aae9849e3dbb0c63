"""A part of a name, wherever it stands: one scan over the bytes of all names, a block at a time. No index is kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gamma_kg.graph.store.layout import AnyArray

BLOCK = 1 << 22
# So much is looked through at most: a second or so, whatever the store holds.
MOST = 1 << 29


def holding(offset: AnyArray, content: AnyArray, part: str, limit: int) -> list[int]:
    """Positions of the first `limit` strings that hold the part, ascending; Latin letters in any case."""
    found: dict[int, None] = {}
    wanted = part.encode("utf-8", "surrogatepass").lower()
    for place in _places(content, wanted):
        owner = int(np.searchsorted(offset, place, side="right")) - 1
        if place + len(wanted) <= int(offset[owner + 1]):  # else it runs over into the next string
            found[owner] = None
        if len(found) >= limit:
            break
    return list(found)


def _places(content: AnyArray, wanted: bytes) -> Iterator[int]:
    if not wanted:
        return
    overlap = len(wanted) - 1
    for start in range(0, min(len(content), MOST), BLOCK):
        block = content[start : start + BLOCK + overlap].tobytes().lower()
        at = block.find(wanted)
        while at >= 0:
            yield start + at
            at = block.find(wanted, at + 1)
