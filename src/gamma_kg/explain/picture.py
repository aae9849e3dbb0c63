"""An explanation as a picture: one lane per path, from the head on the left to the tail on the right.

Boxes are entities, arrows are facts in their own direction, thickness is how far the score falls without the path.
Below: the share of each geometric branch, and the facts that matter most. Plain SVG, no script, no outside font.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gamma_kg.explain.text import path_text

if TYPE_CHECKING:
    from gamma_kg.explain.explain import Explanation, Path, Step

FONT = "font-family='Inter, Segoe UI, Helvetica, Arial, sans-serif'"
INK, QUIET, PAPER, LINE = "#1d2733", "#66727f", "#ffffff", "#dfe4ea"
HEAD, TAIL, NODE = "#1f6feb", "#c2410c", "#eef2f6"
PALETTE = ("#2a78b5", "#d9822b", "#3a9d5d", "#b5446e", "#7b61c9", "#0f9aa8", "#8a6d3b", "#5f6b7a")
CHAR = 7.1  # mean width of a character at 13 px
BOX_HEIGHT, LANE_HEIGHT, MARGIN, TOP = 30, 66, 24, 84
MAX_NAME, MAX_RELATION = 22, 24


def draw_svg(explanation: Explanation) -> str:
    """The whole picture as an SVG document."""
    e = explanation
    end_width = max(_box_width(e.head), _box_width(e.tail), 90)
    lanes = [_Lane(e.head, path) for path in e.paths]
    inner = max([lane.width for lane in lanes], default=260.0)
    width = max(2 * MARGIN + 2 * end_width + inner, 640)
    lanes_height = max(len(lanes), 1) * LANE_HEIGHT
    middle = TOP + lanes_height / 2
    left, right = MARGIN + end_width, width - MARGIN - end_width
    most = max([lane.path.drop for lane in lanes if lane.path.drop > 0], default=1.0)
    colours = _relation_colours(lanes)
    parts = [_title(e, width)]
    for number, lane in enumerate(lanes):
        y = TOP + number * LANE_HEIGHT + LANE_HEIGHT / 2
        parts.append(lane.draw(left, right, y, middle, most, colours))
    if not lanes:
        parts.append(_text(width / 2, middle + 4, "no path within reach", QUIET, "middle"))
    parts.append(_box(MARGIN, middle, end_width, e.head, HEAD, PAPER))
    parts.append(_box(right, middle, end_width, e.tail, TAIL, PAPER))
    y = TOP + lanes_height + 26
    footer, height = _footer(e, y, width)
    parts.append(footer)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
        f"viewBox='0 0 {width:.0f} {height:.0f}' role='img' {FONT}>"
        f"<title>{escape(f'Why ({e.head}, {e.relation}, {e.tail})')}</title>"
        f"<rect width='100%' height='100%' fill='{PAPER}'/>{''.join(parts)}</svg>"
    )


class _Lane:
    """One path: its inner boxes and the arrows between them."""

    def __init__(self, start: str, path: Path) -> None:
        self.path = path
        self.inner = [step.tail if step.forward else step.head for step in path.steps[:-1]]
        self.boxes = [_box_width(name) for name in self.inner]
        self.gaps = [max(_text_width(_short(step.relation, MAX_RELATION)) + 36, 90) for step in path.steps]
        # The outer arrows also need room to bend.
        self.gaps[0], self.gaps[-1] = self.gaps[0] + 40, self.gaps[-1] + 40
        self.width = sum(self.boxes) + sum(self.gaps)

    def draw(self, left: float, right: float, y: float, middle: float, most: float, colours: dict[str, str]) -> str:
        thickness = 1.5 + 5.5 * max(self.path.drop, 0) / most
        spare = (right - left - self.width) / len(self.gaps)
        x, parts, boxes = left, [], []
        for number, step in enumerate(self.path.steps):
            gap = self.gaps[number] + spare
            start_y = middle if number == 0 else y
            end_y = middle if number == len(self.path.steps) - 1 else y
            parts.append(_arrow(x, start_y, x + gap, end_y, y, step, thickness, colours[step.relation]))
            x += gap
            if number < len(self.inner):
                boxes.append(_box(x, y, self.boxes[number], self.inner[number], NODE, INK))
                x += self.boxes[number]
        return "".join(parts + boxes)


def _arrow(x1: float, y1: float, x2: float, y2: float, lane: float, step: Step, thickness: float, colour: str) -> str:
    """A curve from left to right with its head at the fact's tail, and the relation's name in the lane."""
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
    tip_x, tip_y, way = (x2, y2, -1) if step.forward else (x1, y1, 1)
    half = 3.5 + thickness * 0.8
    tip = f"M{tip_x:.1f},{tip_y:.1f} l{way * (head + 3):.1f},{-half:.1f} l0,{2 * half:.1f} Z"
    centre = (x1 + x2) / 2 + 20 * (y1 != lane) - 20 * (y2 != lane)
    label = _text(centre, lane - 7 - thickness / 2, _short(step.relation, MAX_RELATION), colour, "middle", 12)
    # A white rim keeps the name readable where curves cross it.
    label = label.replace("<text ", f"<text paint-order='stroke' stroke='{PAPER}' stroke-width='4' ")
    stroke = f"stroke='{colour}' stroke-width='{thickness:.1f}' stroke-linecap='round' opacity='.85'"
    return (
        f"<g><title>{escape(f'({step.head}, {step.relation}, {step.tail})')}</title>"
        f"<path d='{curve}' fill='none' {stroke}/><path d='{tip}' fill='{colour}'/>{label}</g>"
    )


def _box(x: float, y: float, width: float, name: str, fill: str, ink: str) -> str:
    return (
        f"<g><title>{escape(name)}</title><rect x='{x:.1f}' y='{y - BOX_HEIGHT / 2:.1f}' width='{width:.1f}' "
        f"height='{BOX_HEIGHT}' rx='8' fill='{fill}' stroke='{LINE}'/>"
        + _text(x + width / 2, y + 4.5, _short(name, MAX_NAME), ink, "middle", 13, 600)
        + "</g>"
    )


def _title(e: Explanation, width: float) -> str:
    where = "already in the graph, explained as if it were not" if e.known else "not in the graph"
    return (
        _text(
            MARGIN,
            34,
            f"Why  {_short(e.head, 40)}  —  {_short(e.relation, 40)}  —  {_short(e.tail, 40)} ?",
            INK,
            "start",
            18,
            700,
        )
        + _text(MARGIN, 56, f"rank {e.rank} · probability {e.probability:.1%} · {where}", QUIET, "start", 13)
        + f"<line x1='{MARGIN}' y1='68' x2='{width - MARGIN:.0f}' y2='68' stroke='{LINE}'/>"
    )


def _footer(e: Explanation, y: float, width: float) -> tuple[str, float]:
    """Branch shares as one bar, facts as bars with their drop; returns the picture and where it ends."""
    parts = [f"<line x1='{MARGIN}' y1='{y - 18:.0f}' x2='{width - MARGIN:.0f}' y2='{y - 18:.0f}' stroke='{LINE}'/>"]
    if len(e.branch_weights) > 1:
        parts.append(_text(MARGIN, y + 6, "Geometry", INK, "start", 13, 600))
        x, whole = MARGIN + 90.0, width - 2 * MARGIN - 90
        total = sum(e.branch_weights.values())
        for number, (name, weight) in enumerate(e.branch_weights.items()):
            part = whole * weight / total
            colour = PALETTE[number % len(PALETTE)]
            parts.append(
                f"<rect x='{x:.1f}' y='{y - 8:.1f}' width='{max(part - 2, 0):.1f}' height='20' rx='4' fill='{colour}'/>"
            )
            if part > _text_width(name) + 40:
                parts.append(_text(x + part / 2, y + 6.5, f"{name} {weight:.0%}", PAPER, "middle", 12, 600))
            x += part
        y += 40
    if e.facts:
        parts.append(_text(MARGIN, y + 4, "Without this fact the score falls by", INK, "start", 13, 600))
        y += 26
        most = max(abs(fact.drop) for fact in e.facts) or 1.0
        for fact in e.facts:
            length = 90 * abs(fact.drop) / most
            colour = TAIL if fact.drop >= 0 else PALETTE[2]
            bar = f"x='{MARGIN}' y='{y - 10:.1f}' width='{max(length, 1):.1f}' height='13' rx='3'"
            parts.append(f"<rect {bar} fill='{colour}' opacity='.8'/>")
            parts.append(_text(MARGIN + 142, y + 1, f"{fact.drop:.2f}", INK, "end", 12, 600))
            name = f"{_short(fact.head, 30)} — {_short(fact.relation, 30)} — {_short(fact.tail, 30)}"
            parts.append(_text(MARGIN + 156, y + 1, f"{name}   (then rank {fact.rank})", INK, "start", 12))
            y += 22
    return "".join(parts), y + 8


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


def _relation_colours(lanes: list[_Lane]) -> dict[str, str]:
    """A colour per relation, in order of appearance."""
    colours: dict[str, str] = {}
    for lane in lanes:
        for step in lane.path.steps:
            colours.setdefault(step.relation, PALETTE[len(colours) % len(PALETTE)])
    return colours


def _text(x: float, y: float, text: str, colour: str, anchor: str, size: int = 13, weight: int = 400) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' fill='{colour}' text-anchor='{anchor}' font-size='{size}' "
        f"font-weight='{weight}'>{escape(text)}</text>"
    )


def _box_width(name: str) -> float:
    return _text_width(_short(name, MAX_NAME)) + 26


def _text_width(text: str) -> float:
    # East Asian characters are about twice as wide.
    return sum(CHAR * (1.9 if ord(c) > 0x2E80 else 1.0) for c in text)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
