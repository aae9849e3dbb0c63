"""The elements that every picture is made of. All text is escaped here: names come from strangers' files.

Sizes are in pixels. Nothing is smaller than `SMALLEST_TEXT`, and the palette keeps apart for colour-blind people too.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

FONT = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
SMALLEST_TEXT = 11
# Okabe and Ito's colours, the yellow left out: it can't be seen on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#7a4fa3")
INK, QUIET, RULE, PAPER = "#1d2733", "#5a6672", "#d8dee4", "#ffffff"
GAIN, LOSS = PALETTE[0], PALETTE[1]
# Mean width of a character in units of its size; a little much, so that text keeps off its neighbours.
CHARACTER = 0.58


def document(width: float, height: float, title: str, body: Iterable[str], *, background: str | None = None) -> str:
    """A whole picture. `title` is what a screen reader says of it."""
    paper = "" if background is None else f'<rect width="100%" height="100%" fill="{background}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{escape(FONT)}" font-size="12">'
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
    look += f' fill="{colour}"' if colour else ""
    look += ' font-weight="600"' if bold else ""
    look += f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{look}>{escape(content)}</text>'


def text_width(content: str, size: float = 12) -> float:
    """About how wide a line of text is."""
    # East Asian characters are about twice as wide.
    return CHARACTER * size * sum(1.8 if ord(c) > 0x2E80 else 1.0 for c in content)


def rect(
    x: float, y: float, width: float, height: float, *, fill: str, tip: str = "", kind: str = "", radius: float = 0
) -> str:
    """A filled rectangle; `tip` is shown while the pointer is over it."""
    look = f' class="{kind}"' if kind else ""
    look += f' rx="{radius:g}"' if radius else ""
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"{look}'
    return f"{box}><title>{escape(tip)}</title></rect>" if tip else f"{box}/>"


def line(x1: float, y1: float, x2: float, y2: float, *, colour: str = RULE, width: float = 1, kind: str = "") -> str:
    look = f' class="{kind}"' if kind else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width:g}"{look}/>'


def polyline(points: Iterable[tuple[float, float]], *, colour: str, width: float = 2, opacity: float = 1) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" opacity="{opacity:g}"/>'
