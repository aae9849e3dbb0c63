"""How sure a share is: the Wilson interval of k seen among n."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# One-sided 95 %: each verdict needs one side of the interval only.
Z = 1.645
# Where a thing never happens, so small a share of exceptions is a slip of whoever wrote the facts.
MAX_SLIPS = 0.001


def at_least(count: ArrayLike, of: ArrayLike) -> NDArray[np.float64]:
    """The least share that fits `count` of `of`; 0 where nothing was seen."""
    centre, spread = _interval(count, of)
    return np.asarray(np.where(np.asarray(of) > 0, np.clip(centre - spread, 0, 1), 0.0))


def at_most(count: ArrayLike, of: ArrayLike) -> NDArray[np.float64]:
    """The largest share that fits `count` of `of`; 1 where nothing was seen."""
    centre, spread = _interval(count, of)
    return np.asarray(np.where(np.asarray(of) > 0, np.clip(centre + spread, 0, 1), 1.0))


def never(count: NDArray[np.int64], of: NDArray[np.int64], bound: float) -> NDArray[np.bool_]:
    """Whether what was counted never happens: the exceptions are slips, and the bound leaves no room for more."""
    return np.asarray((count <= MAX_SLIPS * of) & (at_most(count, of) <= bound))


def _interval(count: ArrayLike, of: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    k, n = np.asarray(count, dtype=np.float64), np.maximum(np.asarray(of, dtype=np.float64), 1)
    share = k / n
    scale = 1 + Z**2 / n
    return (share + Z**2 / (2 * n)) / scale, Z / scale * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
