"""A run asks no more than it has time for."""

from __future__ import annotations

import pytest

from gamma_kg.predicting import pace
from gamma_kg.predicting.pace import Pace


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize("seconds_of_a_query", [0.001, 0.05, 0.4, 3.0])
def test_blocks_grow_and_end_before_the_time_does(monkeypatch: pytest.MonkeyPatch, seconds_of_a_query: float) -> None:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    kept = Pace(64, 30.0)
    sizes = []
    while (size := kept.next()) and len(sizes) < 1000:
        sizes.append(size)
        clock.now += size * seconds_of_a_query
    assert sizes[0] == pace.FIRST and max(sizes) <= 64
    assert clock.now <= 30.0
    # Hardly any time is left over: no query would have been done in it.
    assert len(sizes) == 1000 or clock.now + seconds_of_a_query > 30.0 - 1e-9


def test_no_time_means_no_query_and_no_bound_means_whole_blocks() -> None:
    assert Pace(64, 0.0).next() == 0
    assert [Pace(64, None).next() for _ in range(2)] == [64, 64]
