"""Proposes the most probable missing facts of a whole graph."""

from gamma_kg.complete.proposals import Completion, Fact, complete

__all__ = ["Completion", "Fact", "complete"]
