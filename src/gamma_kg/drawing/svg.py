"""The elements that every picture is made of. All text is escaped here: names come from strangers' files.

Sizes are in pixels. Nothing is smaller than `SMALLEST_TEXT`, and the palette keeps apart for colour-blind people too.
Colours stand in attributes, so that a picture is complete by itself, and what has one of the named colours has a class
as well (`g-ink`, `g-node`, `g-3` …): a page that shows pictures inline can give them other colours on a dark screen.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from gamma_kg.io.shown import shown_lines

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
SMALLEST_TEXT = 11
# Okabe and Ito's colours, the yellow left out: it can't be seen on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#7a4fa3")
INK, QUIET, RULE, PAPER = "#1d2733", "#5a6672", "#d8dee4", "#ffffff"
GAIN, LOSS = PALETTE[0], PALETTE[1]
HEAD, TAIL, NODE = "#005fa3", "#a34700", "#eef2f6"  # boxes; white text can be read on the first two
CLASSES = {INK: "g-ink", QUIET: "g-quiet", RULE: "g-line", PAPER: "g-paper", HEAD: "g-head", TAIL: "g-tail"}
CLASSES |= {NODE: "g-node"} | {colour: f"g-{number}" for number, colour in enumerate(PALETTE)}
# Mean width of a character in units of its size; a little much, so that text keeps off its neighbours.
CHARACTER = 0.58


def escape(content: str) -> str:
    """Text for XML and HTML, in elements and attributes."""
    return html.escape(shown_lines(content))


def painted(colour: str | None, kind: str = "", attribute: str = "fill") -> str:
    """The attributes that give an element a colour; no colour leaves it to the page around."""
    kinds = " ".join(part for part in (kind, CLASSES.get(colour or "", "")) if part)
    return (f' {attribute}="{colour}"' if colour else "") + (f' class="{kinds}"' if kinds else "")


def linked(shape: str, address: str, says: str) -> str:
    """The shape as a link; `says` is its name for those who don't see it."""
    return f'<a href="{escape(address)}" aria-label="{escape(says)}">{shape}</a>'


def document(width: float, height: float, title: str, body: Iterable[str], *, background: str | None = None) -> str:
    """A whole picture. `title` is what a screen reader says of it."""
    paper = "" if background is None else f'<rect width="100%" height="100%"{painted(background)}/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="g-picture" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" font-family="{escape(FONT)}" font-size="12">'
        f"<title>{escape(title)}</title>{paper}{''.join(body)}</svg>"
    )


def text(
    x: float,
    y: float,
    content: str,
    *,
    anchor: str = "start",
    size: float = 12,
    colour: str | None = INK,
    bold: bool = False,
    kind: str = "",
) -> str:
    """A line of text whose base line starts, ends or is centred at (x, y)."""
    assert size >= SMALLEST_TEXT, f"text of {size} px can't be read"
    look = f' font-size="{size:g}"' if size != 12 else ""
    look += painted(colour, kind)
    look += ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{look}>{escape(content)}</text>'


def text_width(content: str, size: float = 12) -> float:
    """About how wide a line of text is."""
    # East Asian characters are about twice as wide.
    return CHARACTER * size * sum(1.8 if ord(c) > 0x2E80 else 1.0 for c in content)


def rect(
    x: float, y: float, width: float, height: float, *, fill: str, tip: str = "", kind: str = "", radius: float = 0
) -> str:
    """A filled rectangle; `tip` is shown while the pointer is over it."""
    look = painted(fill, kind) + (f' rx="{radius:g}"' if radius else "")
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"{look}'
    return f"{box}><title>{escape(tip)}</title></rect>" if tip else f"{box}/>"


def line(x1: float, y1: float, x2: float, y2: float, *, colour: str = RULE, width: float = 1, kind: str = "") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends}{painted(colour, kind, "stroke")} stroke-width="{width:g}"/>'


def polyline(points: Iterable[tuple[float, float]], *, colour: str, width: float = 2, opacity: float = 1) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" opacity="{opacity:g}"/>'
