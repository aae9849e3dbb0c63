"""Budget, phases and learning rate, all as functions of progress: the share of the run that is done, 0..1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gamma_kg.training.config import Phase, TrainConfig


def progress(config: TrainConfig, steps: float, seconds: float) -> float:
    """How far the run is: by steps or by the clock, whichever is further."""
    by_steps = steps / config.steps if config.steps else 0.0
    by_clock = seconds / (60 * config.minutes) if config.minutes else 0.0
    return max(by_steps, by_clock)


def phase_number(phases: Sequence[Phase], done: float) -> int:
    """Which phase is due at this progress."""
    total, ends = sum(phase.share for phase in phases), 0.0
    for number, phase in enumerate(phases):
        ends += phase.share / total
        if done < ends - 1e-9:
            return number
    return len(phases) - 1


def rate_factor(config: TrainConfig, step: int, done: float) -> float:
    """Share of the learning rate at this step: warm-up first, decay over the last part."""
    warm = min(1.0, (step + 1) / config.warmup_steps) if config.warmup_steps else 1.0
    into_decay = min(max((done - (1 - config.decay_share)) / config.decay_share, 0.0), 1.0)
    if config.decay == "none":
        left = 1.0
    elif config.decay == "linear":
        left = 1 - into_decay
    else:
        left = (1 + math.cos(math.pi * into_decay)) / 2
    return warm * (config.final_rate + (1 - config.final_rate) * left)
