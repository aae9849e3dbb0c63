"""The parts that pictures are made of: boxes for entities, arrows for facts, text. Plain SVG, no script, no font.

Colours stand in attributes, so that a picture is complete by itself, and every part has a class as well (`g-ink`,
`g-node`, `g-arrow g-3` …): a page that shows pictures inline can give them other colours, as for a dark screen.
Names come from anybody's data: they pass through `escape` on their way in.
"""

from __future__ import annotations

import html
import re

FONT = "font-family='Inter, Segoe UI, Helvetica, Arial, sans-serif'"
INK, QUIET, PAPER, LINE = "#1d2733", "#5b6672", "#ffffff", "#dfe4ea"
HEAD, TAIL, NODE = "#1a5fd0", "#b23a0a", "#eef2f6"
# Dark enough to be read as text on white.
PALETTE = ("#1f6aa5", "#a3560c", "#2b7a47", "#a83a62", "#6849b8", "#0b7480", "#755a2c", "#55606e")
CHAR = 7.1  # mean width of a character at 13 px
BOX_HEIGHT = 30
MAX_NAME, MAX_RELATION = 22, 24
# Characters that XML does not allow at all, escaped or not.
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Text for XML and HTML, in elements and attributes."""
    return html.escape(NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def document(width: float, height: float, title: str, body: str) -> str:
    """A whole picture on white paper."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' class='g-picture' width='{width:.0f}' height='{height:.0f}' "
        f"viewBox='0 0 {width:.0f} {height:.0f}' role='img' {FONT}>"
        f"<title>{escape(title)}</title>"
        f"<rect class='g-paper' width='100%' height='100%' fill='{PAPER}'/>{body}</svg>"
    )


def text(
    x: float,
    y: float,
    words: str,
    colour: str,
    anchor: str,
    size: int = 13,
    weight: int = 400,
    rim: bool = False,
) -> str:
    """One line of text; a `rim` of paper keeps it readable where lines cross it."""
    paint = f"paint-order='stroke' stroke='{PAPER}' stroke-width='4' " if rim else ""
    return (
        f"<text {paint}class='{_class(colour)}' x='{x:.1f}' y='{y:.1f}' fill='{colour}' text-anchor='{anchor}' "
        f"font-size='{size}' font-weight='{weight}'>{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line class='g-line' x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{LINE}'/>"


def box(x: float, y: float, width: float, name: str, fill: str, ink: str) -> str:
    """A box with a name, its left side at x, its middle at y."""
    return (
        f"<g class='g-box'><title>{escape(name)}</title><rect class='{_class(fill)}' x='{x:.1f}' "
        f"y='{y - BOX_HEIGHT / 2:.1f}' width='{width:.1f}' height='{BOX_HEIGHT}' rx='8' fill='{fill}' stroke='{LINE}'/>"
        + text(x + width / 2, y + 4.5, short(name, MAX_NAME), ink, "middle", 13, 600)
        + "</g>"
    )


def arrow(curve: str, tip: tuple[float, float, int], thickness: float, colour: str, fact: str, label: str) -> str:
    """A curve with its tip at (x, y), which points left (1) or right (-1); `fact` is what hovering shows."""
    x, y, way = tip
    half = 3.5 + thickness * 0.8
    point = f"M{x:.1f},{y:.1f} l{way * (8 + thickness):.1f},{-half:.1f} l0,{2 * half:.1f} Z"
    stroke = f"stroke='{colour}' stroke-width='{thickness:.1f}' stroke-linecap='round' opacity='.85'"
    return (
        f"<g class='g-arrow {_class(colour)}'><title>{escape(fact)}</title>"
        f"<path class='g-stroke' d='{curve}' fill='none' {stroke}/>"
        f"<path class='g-fill' d='{point}' fill='{colour}'/>{label}</g>"
    )


def linked(shape: str, address: str, says: str) -> str:
    """The shape as a link; `says` is its name for those who don't see it."""
    return f"<a href='{escape(address)}' aria-label='{escape(says)}'>{shape}</a>"


def colours_of(relations: list[str]) -> dict[str, str]:
    """A colour per relation, in order of appearance."""
    found: dict[str, str] = {}
    for relation in relations:
        found.setdefault(relation, PALETTE[len(found) % len(PALETTE)])
    return found


def box_width(name: str) -> float:
    return text_width(short(name, MAX_NAME)) + 26


def text_width(words: str) -> float:
    # East Asian characters are about twice as wide.
    return sum(CHAR * (1.9 if ord(c) > 0x2E80 else 1.0) for c in words)


def short(words: str, length: int) -> str:
    return words if len(words) <= length else words[: length - 1] + "…"


_CLASSES = {INK: "g-ink", QUIET: "g-quiet", PAPER: "g-white", HEAD: "g-head", TAIL: "g-tail", NODE: "g-node"}
_CLASSES |= {colour: f"g-{number}" for number, colour in enumerate(PALETTE)}


def _class(colour: str) -> str:
    return _CLASSES.get(colour, "")
