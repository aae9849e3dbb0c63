"""How questions are answered, whoever asks them: chosen where they come in, then handed on whole.

Every part of an answer (its scores, its probability, its reasons) is computed by the same record, so no part of it can
lose an option on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

from gamma_kg.errors import DataError
from gamma_kg.predicting.switch import Local


@dataclass(frozen=True)
class AnswerOptions:
    """The options of `Predictor.predict`, of query files, of `complete` and of their runs on Ray."""

    top_k: int = 10
    include_known: bool = False  # also rank facts that the graph already holds
    rules: bool = True  # leave out what contradicts the patterns of the graph's own facts
    memory: str | int | None = None  # at most so much; a share of what is free if left out
    local: Local = "auto"  # from a neighbourhood, or from the whole graph

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise DataError(f"top_k must be at least 1, got {self.top_k}")


# As the published tables rank: whole graphs, and no rules.
AS_PUBLISHED = AnswerOptions(rules=False, local="off")
