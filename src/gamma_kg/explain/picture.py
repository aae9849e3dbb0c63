"""An explanation as a picture: one lane per path, from the head on the left to the tail on the right.

Boxes are entities, arrows are facts in their own direction, thickness is how far the score falls without the path.
Below: the share of each geometric branch, and the facts that matter most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gamma_kg.explain import shapes
from gamma_kg.explain.shapes import (
    HEAD,
    INK,
    LINE,
    MAX_RELATION,
    NODE,
    PALETTE,
    PAPER,
    QUIET,
    TAIL,
    escape,
    short,
    text,
    text_width,
)
from gamma_kg.explain.text import path_text

if TYPE_CHECKING:
    from gamma_kg.explain.explain import Explanation, Path, Step

LANE_HEIGHT, MARGIN, TOP = 66, 24, 84
Link = Callable[["Step"], str]


def draw_svg(explanation: Explanation, link: Link | None = None) -> str:
    """The whole picture as an SVG document; with `link` every fact of a path leads to an address."""
    e = explanation
    end_width = max(shapes.box_width(e.head), shapes.box_width(e.tail), 90)
    lanes = [_Lane(path) for path in e.paths]
    inner = max([lane.width for lane in lanes], default=260.0)
    width = max(2 * MARGIN + 2 * end_width + inner, 640)
    lanes_height = max(len(lanes), 1) * LANE_HEIGHT
    middle = TOP + lanes_height / 2
    left, right = MARGIN + end_width, width - MARGIN - end_width
    most = max([lane.path.drop for lane in lanes if lane.path.drop > 0], default=1.0)
    colours = shapes.colours_of([step.relation for lane in lanes for step in lane.path.steps])
    parts = [_title(e, width)]
    for number, lane in enumerate(lanes):
        y = TOP + number * LANE_HEIGHT + LANE_HEIGHT / 2
        parts.append(lane.draw(left, right, y, middle, most, colours, link))
    if not lanes:
        parts.append(text(width / 2, middle + 4, "no path within reach", QUIET, "middle"))
    parts.append(shapes.box(MARGIN, middle, end_width, e.head, HEAD, PAPER))
    parts.append(shapes.box(right, middle, end_width, e.tail, TAIL, PAPER))
    footer, height = _footer(e, TOP + lanes_height + 26, width)
    parts.append(footer)
    return shapes.document(width, height, f"Why ({e.head}, {e.relation}, {e.tail})", "".join(parts))


class _Lane:
    """One path: its inner boxes and the arrows between them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.inner = [step.tail if step.forward else step.head for step in path.steps[:-1]]
        self.boxes = [shapes.box_width(name) for name in self.inner]
        self.gaps = [max(text_width(short(step.relation, MAX_RELATION)) + 36, 90) for step in path.steps]
        # The outer arrows also need room to bend.
        self.gaps[0], self.gaps[-1] = self.gaps[0] + 40, self.gaps[-1] + 40
        self.width = sum(self.boxes) + sum(self.gaps)

    def draw(
        self,
        left: float,
        right: float,
        y: float,
        middle: float,
        most: float,
        colours: dict[str, str],
        link: Link | None,
    ) -> str:
        thickness = 1.5 + 5.5 * max(self.path.drop, 0) / most
        spare = (right - left - self.width) / len(self.gaps)
        x, parts, boxes = left, [], []
        for number, step in enumerate(self.path.steps):
            gap = self.gaps[number] + spare
            start_y = middle if number == 0 else y
            end_y = middle if number == len(self.path.steps) - 1 else y
            arrow = _arrow(x, start_y, x + gap, end_y, y, step, thickness, colours[step.relation])
            parts.append(arrow if link is None else shapes.linked(arrow, link(step), f"without {_fact(step)}"))
            x += gap
            if number < len(self.inner):
                boxes.append(shapes.box(x, y, self.boxes[number], self.inner[number], NODE, INK))
                x += self.boxes[number]
        return "".join(parts + boxes)


def _arrow(x1: float, y1: float, x2: float, y2: float, lane: float, step: Step, thickness: float, colour: str) -> str:
    """A curve from left to right with its tip at the fact's tail, and the relation's name in the lane."""
    bend = min(60, (x2 - x1) / 2)
    head = 5 + thickness
    start, stop = (x1, x2 - head) if step.forward else (x1 + head, x2)
    if y1 == y2 == lane:
        curve = f"M{start:.1f},{y1:.1f} L{stop:.1f},{y2:.1f}"
    else:
        curve = (
            f"M{start:.1f},{y1:.1f} C{start + bend:.1f},{y1:.1f} {start + bend * 0.3:.1f},{lane:.1f} "
            f"{(x1 + x2) / 2:.1f},{lane:.1f} S{stop - bend:.1f},{y2:.1f} {stop:.1f},{y2:.1f}"
        )
    tip = (x2, y2, -1) if step.forward else (x1, y1, 1)
    centre = (x1 + x2) / 2 + 20 * (y1 != lane) - 20 * (y2 != lane)
    words = short(step.relation, MAX_RELATION)
    label = text(centre, lane - 7 - thickness / 2, words, colour, "middle", 12, rim=True)
    return shapes.arrow(curve, tip, thickness, colour, _fact(step), label)


def _fact(step: Step) -> str:
    return f"({step.head}, {step.relation}, {step.tail})"


def _title(e: Explanation, width: float) -> str:
    where = "already in the graph, explained as if it were not" if e.known else "not in the graph"
    asked = f"Why  {short(e.head, 40)}  —  {short(e.relation, 40)}  —  {short(e.tail, 40)} ?"
    return (
        text(MARGIN, 34, asked, INK, "start", 18, 700)
        + text(MARGIN, 56, f"rank {e.rank} · probability {e.probability:.1%} · {where}", QUIET, "start", 13)
        + shapes.line(MARGIN, 68, width - MARGIN, 68)
    )


def _footer(e: Explanation, y: float, width: float) -> tuple[str, float]:
    """Branch shares as one bar, facts as bars with their drop; returns the picture and where it ends."""
    parts = [shapes.line(MARGIN, y - 18, width - MARGIN, y - 18)]
    if len(e.branch_weights) > 1:
        parts.append(text(MARGIN, y + 6, "Geometry", INK, "start", 13, 600))
        x, whole = MARGIN + 90.0, width - 2 * MARGIN - 90
        total = sum(e.branch_weights.values())
        for number, (name, weight) in enumerate(e.branch_weights.items()):
            part = whole * weight / total
            colour = PALETTE[number % len(PALETTE)]
            parts.append(_bar(x, y - 8, max(part - 2, 0), 20, colour, f"g-{number % len(PALETTE)}"))
            if part > text_width(name) + 40:
                parts.append(text(x + part / 2, y + 6.5, f"{name} {weight:.0%}", PAPER, "middle", 12, 600))
            x += part
        y += 40
    if e.facts:
        parts.append(text(MARGIN, y + 4, "Without this fact the score falls by", INK, "start", 13, 600))
        y += 26
        most = max(abs(fact.drop) for fact in e.facts) or 1.0
        for fact in e.facts:
            length = 90 * abs(fact.drop) / most
            colour, kind = (TAIL, "g-tail") if fact.drop >= 0 else (PALETTE[2], "g-2")
            parts.append(_bar(MARGIN, y - 10, max(length, 1), 13, colour, kind))
            parts.append(text(MARGIN + 142, y + 1, f"{fact.drop:.2f}", INK, "end", 12, 600))
            name = f"{short(fact.head, 30)} — {short(fact.relation, 30)} — {short(fact.tail, 30)}"
            parts.append(text(MARGIN + 156, y + 1, f"{name}   (then rank {fact.rank})", INK, "start", 12))
            y += 22
    return "".join(parts), y + 8


def _bar(x: float, y: float, width: float, height: float, colour: str, kind: str) -> str:
    return (
        f"<rect class='g-bar {kind}' x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height}' rx='3' "
        f"fill='{colour}'/>"
    )


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
body {{ font: 15px/1.5 Inter, "Segoe UI", Helvetica, Arial, sans-serif; color: {INK};
  max-width: 1100px; margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto; border: 1px solid {LINE}; border-radius: 10px }}
table {{ border-collapse: collapse; margin: .5rem 0 1.5rem }}
td, th {{ padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid {LINE} }}
td:first-child {{ font-variant-numeric: tabular-nums; white-space: nowrap }}
</style></head><body>
{draw_svg(e)}
<h2>Paths</h2><table><tr><th>score falls by</th><th>path</th></tr>{paths}</table>
<h2>Facts</h2><table><tr><th>score falls by</th><th>without</th><th>then rank</th></tr>{facts}</table>
</body></html>
"""
