"""What can go wrong in a run."""

from __future__ import annotations

from gamma_kg.errors import GammaError


class TrainingError(GammaError):
    """A run that can't go on: it diverged, a process was lost, or there is nothing to resume."""
