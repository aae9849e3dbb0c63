"""What multiplying by a relation does to a plane of numbers a + b·i, drawn for the four units i.

A grid of points (grey) is multiplied by one number r (red arrow) and lands on the coloured grid: real stretches the
axes, complex (i² = −1) turns, split-complex (i² = +1) squeezes along the diagonals, dual (i² = 0) shears.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, cosh, pi, sin, sinh

SIZE, SCALE = 300, 52
Point = tuple[float, float]
# name: (unit squared, the number multiplied by, colour, caption, the curve of all numbers of size 1)
ALGEBRAS: dict[str, tuple[int | None, Point, str, str, Callable[[float], Point]]] = {
    "real": (None, (1.45, 0.6), "#2a78b5", "real: each axis is stretched", lambda s: (1, 2.6 * s)),
    "complex": (-1, (0.95, 0.55), "#3a9d5d", "complex, i² = −1: a turn", lambda s: (cos(pi * s), sin(pi * s))),
    "split-complex": (1, (1.16, 0.58), "#d9822b", "split-complex, j² = +1: a squeeze", lambda s: (cosh(s), sinh(s))),
    "dual": (0, (1.0, 0.75), "#b5446e", "dual, ε² = 0: a shear", lambda s: (1, 2.6 * s)),
}


def product(x: Point, r: Point, sigma: int | None) -> Point:
    """x·r: component by component for the real algebra, else (a + b·i)(c + d·i) with i² = sigma."""
    if sigma is None:
        return x[0] * r[0], x[1] * r[1]
    return x[0] * r[0] + sigma * x[1] * r[1], x[0] * r[1] + x[1] * r[0]


def draw(name: str) -> str:
    """One algebra as an SVG document."""
    sigma, r, colour, caption, unit_curve = ALGEBRAS[name]
    ticks = [-1.0, -0.5, 0.0, 0.5, 1.0]
    lines = [[(t, s) for s in ticks] for t in ticks] + [[(s, t) for s in ticks] for t in ticks]
    parts = [_line([(-2.6, 0), (2.6, 0)], "#c6ccd3", 1), _line([(0, -2.4), (0, 2.4)], "#c6ccd3", 1)]
    curve = [unit_curve(i / 20) for i in range(-20, 21)]
    if sigma is not None:
        parts.append(_line(curve, "#8d97a3", 1.2, "4 4"))
        parts.append(_line([(-a, -b) for a, b in curve], "#8d97a3", 1.2, "4 4"))
    parts += [_line(line, "#b8c0c9", 1.4) for line in lines]
    parts += [_line([product(point, r, sigma) for point in line], colour, 2) for line in lines]
    parts += [_dot(product((a, b), r, sigma), colour) for a in ticks for b in ticks]
    parts.append(_line([(0, 0), r], "#d1242f", 2.5) + _dot(r, "#d1242f", 4.5))
    label = f"<text x='{SIZE / 2}' y='{SIZE - 8}' text-anchor='middle' font-size='14' fill='#1d2733'>{caption}</text>"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {SIZE} {SIZE}' width='{SIZE}' height='{SIZE}' "
        f"font-family='Helvetica, Arial, sans-serif'><rect width='100%' height='100%' rx='8' fill='#fff'/>"
        f"<clipPath id='c'><rect x='4' y='4' width='{SIZE - 8}' height='{SIZE - 32}'/></clipPath>"
        f"<g clip-path='url(#c)'>{''.join(parts)}</g>{label}</svg>"
    )


def _place(point: Point) -> str:
    return f"{SIZE / 2 + SCALE * point[0]:.1f},{SIZE / 2 - 10 - SCALE * point[1]:.1f}"


def _line(points: list[Point], colour: str, width: float, dashes: str = "") -> str:
    dash = f" stroke-dasharray='{dashes}'" if dashes else ""
    places = " ".join(map(_place, points))
    return f"<polyline points='{places}' fill='none' stroke='{colour}' stroke-width='{width}'{dash}/>"


def _dot(point: Point, colour: str, radius: float = 2.6) -> str:
    x, y = _place(point).split(",")
    return f"<circle cx='{x}' cy='{y}' r='{radius}' fill='{colour}'/>"


ALGEBRA_PICTURES = {name: (lambda name=name: draw(name)) for name in ALGEBRAS}


if __name__ == "__main__":
    for algebra in ALGEBRAS:
        print(draw(algebra))
