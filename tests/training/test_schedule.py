from __future__ import annotations

import pytest

from gamma_kg.training.config import Phase, TrainConfig
from gamma_kg.training.schedule import phase_number, progress, rate_factor


def test_progress_follows_steps_clock_or_whichever_is_further() -> None:
    steps = TrainConfig(steps=100, minutes=None)
    clock = TrainConfig(steps=None, minutes=10)
    both = TrainConfig(steps=100, minutes=10)
    assert progress(steps, 25, 9999) == 0.25
    assert progress(clock, 25, 300) == 0.5
    assert progress(both, 75, 300) == 0.75


def test_phases_share_the_run() -> None:
    phases = [Phase(share=1), Phase(share=2), Phase(share=1)]
    assert [phase_number(phases, done) for done in (0, 0.24, 0.25, 0.74, 0.75, 1.0, 1.2)] == [0, 0, 1, 1, 2, 2, 2]


def test_the_rate_warms_up_and_decays_over_the_last_part() -> None:
    config = TrainConfig(warmup_steps=10, decay="linear", decay_share=0.5)
    assert rate_factor(config, 0, 0.0) == pytest.approx(0.1)
    assert rate_factor(config, 9, 0.1) == 1
    assert rate_factor(config, 50, 0.5) == 1
    assert rate_factor(config, 75, 0.75) == pytest.approx(0.5)
    assert rate_factor(config, 100, 1.0) == 0
    cosine = config.with_options(decay="cosine", final_rate=0.2)
    assert rate_factor(cosine, 75, 0.75) == pytest.approx(0.6)
    assert rate_factor(cosine, 100, 1.0) == pytest.approx(0.2)


def test_without_warmup_and_decay_the_rate_is_constant() -> None:
    config = TrainConfig()
    assert {rate_factor(config, step, step / 100) for step in (0, 50, 100)} == {1.0}
