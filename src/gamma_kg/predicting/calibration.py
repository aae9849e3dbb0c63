"""Probabilities that mean something on the user's own graph: one for a fact, from whichever end it is asked for.

A monotone map leads there from the plain log-odds of a fact (`predicting/odds.py`), for the whole graph and for every
relation with enough data. `predicting/calibrate.py` says what the probabilities mean and makes the maps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.predicting.odds import from_log_odds

FloatArray = NDArray[np.float64]

# Candidates pooled before fitting, and how many more the plain odds count for: a few lucky answers are no certainty.
GROUP = 10
SHARE_WEIGHT = 2.0
LEAST_PROBABILITY = 1e-6
# The map that changes nothing: log-odds beyond this are as good as certain.
PLAIN_RANGE, PLAIN_POINTS = 14.0, 1_121


@dataclass(frozen=True)
class MonotoneMap:
    """A non-decreasing function through a few points, constant beyond them."""

    x: FloatArray
    y: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        return np.interp(x, self.x, self.y)

    @classmethod
    def plain(cls) -> MonotoneMap:
        """From log-odds to the probability that they are, to four digits or so."""
        x = np.linspace(-PLAIN_RANGE, PLAIN_RANGE, PLAIN_POINTS)
        return cls(x, from_log_odds(x))

    @classmethod
    def fit(cls, x: FloatArray, y: FloatArray, weight: FloatArray | None = None) -> MonotoneMap:
        """Isotonic regression over small groups of neighbours, each drawn a little towards the probability of x.

        Each level becomes one point at the mean of its x, so that the map rises between them.
        """
        from scipy.optimize import isotonic_regression  # slow to load, and only fitting needs it

        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        weight = np.ones_like(x) if weight is None else weight[order]
        # Equal x must stay together: a group starts where a new x begins at or after a multiple of GROUP.
        is_new = np.diff(x, prepend=-np.inf) > 0
        number = np.maximum.accumulate(np.where(is_new, np.arange(len(x)) // GROUP, 0))
        start = np.flatnonzero(np.diff(number, prepend=-1) > 0)
        size = np.add.reduceat(weight, start)
        centre = np.add.reduceat(weight * x, start) / size
        rate = (np.add.reduceat(weight * y, start) + SHARE_WEIGHT * from_log_odds(centre)) / (size + SHARE_WEIGHT)
        level = isotonic_regression(rate, weights=size).x
        first = np.flatnonzero(np.diff(level, prepend=-np.inf) > 0)
        total = np.add.reduceat(size, first)
        return cls(np.add.reduceat(size * centre, first) / total, np.clip(level[first], LEAST_PROBABILITY, 1.0))


@dataclass(frozen=True)
class ReliabilityBin:
    """Proposals whose probability lay between two bounds: what was said, and how often it was so."""

    low: float
    high: float
    count: int
    said: float
    held: float


@dataclass(frozen=True)
class Calibration:
    """Turns the plain log-odds of a fact into the frequency with which such facts are right."""

    whole: MonotoneMap
    by_relation: Mapping[int, MonotoneMap] = field(repr=False)
    num_hidden: int = 0
    num_queries: int = 0
    error_before: float = 0.0
    """Expected calibration error of the plain odds, on hidden facts."""
    error_after: float = 0.0
    """The same after the map, each half of the queries judged by a map fitted to the other half; that of the plain
    odds where no map did better, so that they stay."""
    reliability: Sequence[ReliabilityBin] = ()
    """What was said and how often it held, judged in the same way."""

    def probability(self, relation: int, odds: FloatArray) -> FloatArray:
        """Probabilities of facts of a relation (by its direct id) from their plain log-odds."""
        return self.by_relation.get(relation, self.whole)(odds)

    def __str__(self) -> str:
        return (
            f"{self.num_hidden} facts hidden, {self.num_queries} queries asked: expected calibration error "
            f"{self.error_before:.3f} before, {self.error_after:.3f} after"
            f" ({len(self.by_relation)} relations with a map of their own)"
        )

    def digest(self) -> str:
        """The same for the same maps."""
        return hashlib.sha256(json.dumps(self.to_dict()).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        maps = {"whole": self.whole, **{str(r): own for r, own in self.by_relation.items()}}
        return {
            "maps": {name: [found.x.tolist(), found.y.tolist()] for name, found in maps.items()},
            "reliability": [list(vars(row).values()) for row in self.reliability],
            **{name: getattr(self, name) for name in ("num_hidden", "num_queries", "error_before", "error_after")},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Calibration:
        maps = {name: MonotoneMap(np.array(x), np.array(y)) for name, (x, y) in record["maps"].items()}
        return cls(
            maps.pop("whole"),
            {int(name): own for name, own in maps.items()},
            reliability=[ReliabilityBin(*row) for row in record["reliability"]],
            **{name: record[name] for name in ("num_hidden", "num_queries", "error_before", "error_after")},
        )
