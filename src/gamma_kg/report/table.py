"""A table of text cells that every renderer understands, and how numbers are written into it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

GROUP_TITLES = {"inductive-er": "inductive e,r", "inductive-e": "inductive e", "transductive": "transductive"}
GROUP_TITLES |= {"total": "total"}


@dataclass(frozen=True)
class Table:
    """Cells are text; the first column names the row."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def mean_text(values: Sequence[float]) -> str:
    return number_text(sum(values) / len(values)) if values else ""


def number_text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def interval_text(interval: tuple[float, float], sign: bool = False) -> str:
    if math.isnan(interval[0]):
        return ""
    low, high = (f"{end:+.3f}" if sign else f"{end:.3f}" for end in interval)
    return f"{low} … {high}"


def p_text(p_value: float) -> str:
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"
