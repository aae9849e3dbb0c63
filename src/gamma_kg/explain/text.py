"""An explanation in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gamma_kg.explain.explain import Explanation, Path


def describe(explanation: Explanation) -> str:
    """Several lines: the answer, the paths, the branches, the facts it rests on."""
    e = explanation
    lines = [
        f"({e.head}, {e.relation}, {e.tail}): rank {e.rank}, probability {e.probability:.1%}, score {e.score:.2f}"
        + (" (in the graph; explained as if it were not)" if e.known else ""),
        "",
        "Paths, by how far the score falls without them:",
    ]
    lines += [f"  {path.drop:6.2f}  {path_text(e.head, path)}" for path in e.paths] or ["  none within reach"]
    if len(e.branch_weights) > 1:
        shares = ", ".join(f"{name} {weight:.0%}" for name, weight in e.branch_weights.items())
        lines += ["", f"Geometry: {shares}"]
    if e.facts:
        lines += ["", "Facts that change the answer most when removed:"]
        lines += [
            f"  {fact.drop:6.2f}  ({fact.head}, {fact.relation}, {fact.tail}), then rank {fact.rank}"
            for fact in e.facts
        ]
    return "\n".join(lines)


def path_text(start: str, path: Path) -> str:
    """'Kenya ← capital of ← Nairobi → located in → Africa'."""
    text = start
    for step in path.steps:
        text += f" → {step.relation} → {step.tail}" if step.forward else f" ← {step.relation} ← {step.head}"
    return text
