"""An explanation as a picture: the facts of all paths as one graph, from the head on the left to the tail on the right.

Boxes are entities, arrows are facts in their own direction, thickness is how far the score falls without the path. The
dashed arrow is the fact in question. Below: the facts that decide, and the share of each branch. Plain SVG, no script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gamma_kg.drawing.network import Arrow, draw_network, wrapped
from gamma_kg.drawing.svg import (
    HEAD,
    INK,
    LOSS,
    PALETTE,
    PAPER,
    QUIET,
    RULE,
    TAIL,
    document,
    escape,
    line,
    rect,
    text,
    text_width,
)
from gamma_kg.explain.text import cause_text, path_text

if TYPE_CHECKING:
    from gamma_kg.explain.explain import Explanation

MARGIN, NARROWEST = 24, 680


def draw_svg(explanation: Explanation, link: Callable[[Arrow], str] | None = None) -> str:
    """The whole picture as an SVG document; with `link` every fact of a path leads to an address."""
    e = explanation
    drawing = draw_network(_arrows(e), e.head, e.tail, fill={e.head: HEAD, e.tail: TAIL}, link=link)
    width = max(drawing.width + 2 * MARGIN, NARROWEST)
    left = (width - drawing.width) / 2
    title, top = _title(e, width)
    parts = [title, f'<g transform="translate({left:.1f},{top})">{drawing.body}</g>']
    y = top + drawing.height + 30
    for part, height in (_facts(e, width), *_branches(e, width)):
        parts.append(f'<g transform="translate(0,{y:.1f})">{part}</g>')
        y += height
    return document(width, y + 4, f"Why ({e.head}, {e.relation}, {e.tail})?", parts, background=PAPER)


def draw_paths(explanation: Explanation, link: Callable[[Arrow], str] | None = None) -> str:
    """The graph of the paths alone, for a page that says the rest itself."""
    e = explanation
    drawing = draw_network(_arrows(e), e.head, e.tail, fill={e.head: HEAD, e.tail: TAIL}, link=link)
    body = f'<g transform="translate({MARGIN},{MARGIN})">{drawing.body}</g>'
    title = f"Why ({e.head}, {e.relation}, {e.tail})?"
    return document(drawing.width + 2 * MARGIN, drawing.height + 2 * MARGIN, title, [body], background=PAPER)


def _arrows(e: Explanation) -> list[Arrow]:
    """Every fact once, as thick as the weightiest path through it; last the fact in question."""
    most = max((path.drop for path in e.paths if path.drop > 0), default=1.0)
    weight: dict[tuple[str, str, str], float] = {}
    for path in e.paths:
        for step in path.steps:
            fact = step.head, step.relation, step.tail
            weight[fact] = max(weight.get(fact, 0.0), path.drop / most)
    return [*(Arrow(*fact, share) for fact, share in weight.items()), Arrow(e.head, e.relation, e.tail, 0.1, True)]


def _title(e: Explanation, width: float) -> tuple[str, float]:
    """The question, in as many lines as it takes, and how the answer stands; and where the graph may begin."""
    where = "already in the graph, explained as if it were not" if e.known else "not in the graph"
    question = f"Why  {e.head} — {e.relation} — {e.tail}?"
    letters = int((width - 2 * MARGIN) / text_width("x", 18))
    lines = wrapped(question, letters)
    size = 18 if len(lines) == 1 else 15
    parts = [text(MARGIN, 30 + 20 * number, part, size=size, bold=True) for number, part in enumerate(lines)]
    y = 34 + 20 * len(lines)
    said = f"rank {e.rank} · probability {e.probability:.1%} · {where}"
    parts += [text(MARGIN, y, said, size=13, colour=QUIET), line(MARGIN, y + 22, width - MARGIN, y + 22)]
    return "".join(parts), y + 38


def _facts(e: Explanation, width: float) -> tuple[str, float]:
    """What decides, then each fact with a bar for its drop; and how high that is."""
    parts = [line(MARGIN, 0, width - MARGIN, 0)]
    y = 22.0
    for sentence in wrapped(cause_text(e), int((width - 2 * MARGIN) / text_width("x", 13))):
        parts.append(text(MARGIN, y, sentence, size=13, bold=True))
        y += 18
    most = max((abs(fact.drop) for fact in e.facts), default=0) or 1.0
    letters = int((width - 2 * MARGIN - 160) / text_width("x"))
    for fact in e.facts:
        colour = LOSS if fact.drop >= 0 else PALETTE[2]
        parts.append(rect(MARGIN, y - 8, max(90 * abs(fact.drop) / most, 1), 13, fill=colour, radius=3))
        parts.append(text(MARGIN + 142, y + 3, f"{fact.drop:+.2f}", anchor="end", bold=True))
        name = f"{fact.head} — {fact.relation} — {fact.tail}  (then rank {fact.rank})"
        for part in wrapped(name, letters):
            parts.append(text(MARGIN + 156, y + 3, part))
            y += 16
        y += 6
    return "".join(parts), y + 6


def _branches(e: Explanation, width: float) -> Iterator[tuple[str, float]]:
    """The share of each branch as one bar."""
    if len(e.branch_weights) < 2:
        return
    parts = [line(MARGIN, 0, width - MARGIN, 0), text(MARGIN, 25, "Branches", size=13, bold=True)]
    x, whole, total = MARGIN + 90.0, width - 2 * MARGIN - 90, sum(e.branch_weights.values())
    # Dark enough for white text.
    shades = ("#005a8c", "#a34700", "#00694d", "#8c4a6e")
    for number, (name, weight) in enumerate(e.branch_weights.items()):
        part, said = whole * weight / total, f"{name} {weight:.0%}"
        parts.append(rect(x, 11, max(part - 2, 0), 20, fill=shades[number % len(shades)], tip=said, radius=4))
        if part > text_width(said) + 8:
            parts.append(text(x + part / 2, 25, said, anchor="middle", colour=PAPER, bold=True))
        x += part
    yield "".join(parts), 44


def draw_html(explanation: Explanation) -> str:
    """A page of its own: the picture, then every path and fact in words."""
    e = explanation
    paths = "".join(f"<tr><td>{path.drop:.2f}</td><td>{escape(path_text(e.head, path))}</td></tr>" for path in e.paths)
    facts = "".join(
        f"<tr><td>{fact.drop:.2f}</td><td>{escape(' — '.join((fact.head, fact.relation, fact.tail)))}</td>"
        f"<td>{fact.rank}</td></tr>"
        for fact in e.facts
    )
    title = escape(f"Why ({e.head}, {e.relation}, {e.tail})?")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: {INK};
  max-width: 1100px; margin: 2rem auto; padding: 0 1rem }}
.picture {{ overflow-x: auto; border: 1px solid {RULE}; border-radius: 10px }}
table {{ border-collapse: collapse; margin: .5rem 0 1.5rem }}
td, th {{ padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid {RULE} }}
td:first-child {{ font-variant-numeric: tabular-nums; white-space: nowrap }}
</style></head><body>
<div class="picture">{draw_svg(e)}</div>
<h2>Paths</h2><table><tr><th>score falls by</th><th>path</th></tr>{paths}</table>
<h2>Facts</h2><p>{escape(cause_text(e))}</p>
<table><tr><th>score falls by</th><th>without</th><th>then rank</th></tr>{facts}</table>
</body></html>
"""
