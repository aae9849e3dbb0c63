"""What is asked and what is answered, in names."""

from __future__ import annotations

from dataclasses import dataclass

Query = tuple[str | None, str | None, str | None]  # head, relation, tail; the one to be predicted is None


@dataclass(frozen=True)
class Prediction:
    """One proposed fact. `name` is the part that was asked for; the fact as a whole is (head, relation, tail)."""

    name: str
    score: float
    probability: float  # share among candidates not known; after `calibrate`, how often such an answer is right
    known: bool  # the graph already holds this fact
    branch_weights: dict[str, float]  # how much each branch counted
    head: str
    relation: str
    tail: str
    why_not: str | None = None  # what the graph's own patterns say against it
    local: int | None = None  # facts in the neighbourhood at most; None: computed on the whole graph
    is_sampled: bool = False  # entities outside of the neighbourhood were scored by a sample of the graph
