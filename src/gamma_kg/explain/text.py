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
    ]
    if e.why_not is not None:
        lines += ["", f"By the rules it is not proposed: {e.why_not}."]
    if e.reasons:
        lines += ["", "Rules of this graph that speak for it, with how often they hold:"]
        lines += [f"  {reason.count / reason.of:6.0%}  {reason.text}" for reason in e.reasons]
    lines += ["", "Paths, by how far the score falls without them:"]
    lines += [f"  {path.drop:6.2f}  {path_text(e.head, path)}" for path in e.paths] or ["  none within reach"]
    if len(e.branch_weights) > 1:
        shares = ", ".join(f"{name} {weight:.0%}" for name, weight in e.branch_weights.items())
        lines += ["", f"Branches: {shares}"]
    if e.is_outside:
        lines += ["", cause_text(e)]
    if e.facts:
        lines += ["", f"{cause_text(e)} The score falls by:"]
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


def cause_text(explanation: Explanation) -> str:
    """One sentence: what the answer rests on."""
    e = explanation
    what = "share of the scores" if e.is_calibrated else "probability"
    if e.is_outside:
        return (
            f"The answer is not among the {e.local:,} facts around {e.head}: its score is what the relation "
            "gives it whatever the head."
        )
    if e.cause == "one":
        deciding, first = [fact for fact in e.facts if fact.share <= e.share / 2], e.facts[0]
        named = f"({first.head}, {first.relation}, {first.tail})"
        count = "One fact decides" if len(deciding) == 1 else f"Each of {len(deciding)} facts decides"
        return f"{count}: without {named} the {what} falls from {e.share:.1%} to {first.share:.1%}."
    if e.cause == "two":
        pair = e.pairs[0]
        both = " and ".join(f"({', '.join(fact)})" for fact in (pair.first, pair.second))
        fall = f"from {e.share:.1%} to {pair.share:.1%}"
        return f"No single fact decides; without both of {both} the {what} falls {fall}."
    if e.cause == "many":
        said = f"No fact and no pair decides ({e.num_tested} tested): the answer rests on many"
        if not e.facts:
            return f"{said}."
        return f"{said}; without the first one below the {what} goes from {e.share:.1%} to {e.facts[0].share:.1%}."
    if e.num_tested:
        return f"None of the {e.num_tested} facts tested speaks for the answer: it is what the relation usually has."
    return "No fact was tested."
