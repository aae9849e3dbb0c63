"""A small graph of named things as a picture: equal names are one box, arrows are facts in their own direction."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gamma_kg.drawing.layers import PORT, Point, columns_from, lay_out
from gamma_kg.drawing.svg import INK, NODE, PALETTE, PAPER, RULE, escape, linked, painted, text, text_width

NAME_SIZE, RELATION_SIZE = 13, 12
LINE_HEIGHT, RELATION_HEIGHT = 16, 14.0
NAME_LETTERS, RELATION_LETTERS = 22, 20  # a longer name goes on in the next line
# Lines are sampled every so many pixels. What a name costs where it stands: for each such point nearer than RIM, for
# each of another line nearer than BESIDE (whose name would it be?), and for each square pixel on a box, on another
# name or above the picture.
SPACING, RIM, BESIDE = 6.0, 3.0, 9.0
LINE_COST, BESIDE_COST, NAME_COST = 40.0, 8.0, 8.0
FAR = 1e6
JOINT = re.compile(r"(?<=[_\-/:.#])|(?<=[a-z])(?=[A-Z])")
# Where along an arrow its name may stand.
STATIONS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
Curve = Sequence[tuple[Point, Point, Point, Point]]  # Bézier pieces, one after the other
Room = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Arrow:
    """A fact; `weight` from 0 to 1 is how thick it is drawn, `dashed` that it is not (yet) a fact."""

    head: str
    relation: str
    tail: str
    weight: float = 0.0
    dashed: bool = False


@dataclass(frozen=True)
class Drawing:
    """Parts of an SVG picture whose upper left corner is (0, 0)."""

    body: str
    width: float
    height: float


def draw_network(
    arrows: Sequence[Arrow],
    first: str,
    last: str | None = None,
    *,
    fill: Mapping[str, str] | None = None,
    link: Callable[[Arrow], str] | None = None,
) -> Drawing:
    """Boxes in columns from `first` on the left to `last` on the right; `fill` gives some of them a colour.

    With `link` every arrow that stands for a fact leads to an address.
    """
    arrows = list(dict.fromkeys(arrows))
    pairs = [(arrow.head, arrow.tail) for arrow in arrows]
    column = columns_from(first, last, pairs)
    lines = {name: wrapped(name, NAME_LETTERS) for name in column}
    size = {
        name: (max(text_width(line, NAME_SIZE) for line in parts) + 26, LINE_HEIGHT * len(parts) + 16)
        for name, parts in lines.items()
    }
    labels = [wrapped(arrow.relation, RELATION_LETTERS) for arrow in arrows]
    layout = lay_out(column, size, pairs, _gaps(column, pairs, labels), _port(pairs, labels))
    colours = {
        relation: PALETTE[i % len(PALETTE)] for i, relation in enumerate(dict.fromkeys(a.relation for a in arrows))
    }
    paths = [_smooth(points) for points in layout.arrows]
    taken = [
        (p.x - RIM, p.y - p.height / 2 - RIM, p.x + p.width + RIM, p.y + p.height / 2) for p in layout.boxes.values()
    ]
    above = (-FAR, -FAR, FAR, -8.0)
    taken += [above, *(_head_room(path) for path in paths)]
    samples = [_samples(path) for path in paths]
    curves, names = [], []
    for number, (arrow, curve, label) in enumerate(zip(arrows, paths, labels, strict=True)):
        fact = f"({arrow.head}, {arrow.relation}, {arrow.tail})"
        shape = f'<g class="g-arrow"><title>{escape(fact)}</title>{_line(curve, arrow, colours[arrow.relation])}</g>'
        curves.append(shape if link is None or arrow.dashed else linked(shape, link(arrow), fact))
        others = [point for i, points in enumerate(samples) if i != number for point in points]
        names.append(_label(curve, label, taken, samples[number], others))
    boxes = []
    for name, place in layout.boxes.items():
        colour = (fill or {}).get(name, NODE)
        boxes.append(_box(place.x, place.y, place.width, place.height, name, lines[name], colour))
    taken.remove(above)
    width = max([layout.width, *(room[2] - RIM for room in taken)])
    return Drawing("".join([*curves, *boxes, *names]), width, max([layout.height, *(box[3] for box in taken)]))


def wrapped(name: str, letters: int) -> list[str]:
    """A name in lines of at most so many letters: nothing is cut off, words stay whole where they fit.

    A word that is too long is parted where its own parts meet: after _ - / : . # or before a capital.
    """
    found: list[str] = []
    for word in name.split() or [""]:
        while len(word) > letters:
            joints = [joint.start() for joint in JOINT.finditer(word, letters // 3, letters + 1)]
            at = joints[-1] if joints else letters
            found.append(word[:at])
            word = word[at:]
        if found and len(found[-1]) + 1 + len(word) <= letters:
            found[-1] += f" {word}"
        elif word:
            found.append(word)
    return found or [""]


def _gaps(
    column: Mapping[str, int], pairs: Sequence[tuple[str, str]], labels: Sequence[Sequence[str]]
) -> dict[int, float]:
    """Room to the right of each column, for the widest name of an arrow that crosses it."""
    room: dict[int, float] = {}
    for (a, b), label in zip(pairs, labels, strict=True):
        wide = max(text_width(line, RELATION_SIZE) for line in label) + 90
        low, high = sorted((column[a], column[b]))
        for c in range(low, max(high, low + 1)):
            room[c] = max(room.get(c, 0), wide)
    return room


def _port(pairs: Sequence[tuple[str, str]], labels: Sequence[Sequence[str]]) -> float:
    """Room between arrows at one side of a box: where three run side by side, names stand between them."""
    count = Counter(frozenset(pair) for pair in pairs)
    between = [len(label) for pair, label in zip(pairs, labels, strict=True) if count[frozenset(pair)] > 2]
    return max([PORT, *(RELATION_HEIGHT * lines + 2 * BESIDE for lines in between)])


def _smooth(points: Sequence[Point]) -> Curve:
    """Bézier pieces through the points that leave and arrive level."""
    pieces = []
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        if x1 == x2:  # within a column: a bow to the right
            bend = 40 + abs(y2 - y1) / 8
            pieces.append(((x1, y1), (x1 + bend, y1), (x2 + bend, y2), (x2, y2)))
        else:
            middle = (x1 + x2) / 2
            pieces.append(((x1, y1), (middle, y1), (middle, y2), (x2, y2)))
    return pieces


def _line(curve: Curve, arrow: Arrow, colour: str) -> str:
    thickness = 1.5 + 4 * min(max(arrow.weight, 0.0), 1.0)
    (x, y), before = curve[-1][3], curve[-1][2]
    way = 1 if x >= before[0] else -1
    long, half = 8 + thickness, 3.5 + thickness * 0.8
    # The line ends inside the head, so that its square end does not show beside the point.
    path = f"M{curve[0][0][0]:.1f},{curve[0][0][1]:.1f}"
    for number, (_, b, c, d) in enumerate(curve):
        end = (d[0] - way * long * 0.7, d[1]) if number == len(curve) - 1 else d
        path += f" C{b[0]:.1f},{b[1]:.1f} {c[0]:.1f},{c[1]:.1f} {end[0]:.1f},{end[1]:.1f}"
    dash = ' stroke-dasharray="6 5"' if arrow.dashed else ""
    head = f"M{x:.1f},{y:.1f} l{-way * long:.1f},{-half:.1f} l0,{2 * half:.1f} Z"
    return (
        f'<path d="{path}" fill="none"{painted(colour, "g-stroke", "stroke")} stroke-width="{thickness:.1f}"{dash}/>'
        f'<path d="{head}"{painted(colour, "g-fill")}/>'
    )


def _label(
    curve: Curve,
    lines: Sequence[str],
    taken: list[Room],
    own: Sequence[Point],
    others: Sequence[Point],
) -> str:
    """The name of an arrow, beside its line, where nothing else stands or runs; takes that room."""
    width = max(text_width(line, RELATION_SIZE) for line in lines)
    height = RELATION_HEIGHT * len(lines)
    rooms = [
        (x - width / 2, y + shift, x + width / 2, y + shift + height)
        for t in STATIONS
        for x, y in [_at(curve, t)]
        for shift in (-height - 5, 6, -height - 11, 12, -height - 18, 19)
    ]
    rooms += [  # beside a line that runs up or down
        (x + shift, y - height / 2, x + shift + width, y + height / 2)
        for t in STATIONS
        for x, y in [_at(curve, t)]
        for shift in (8, -width - 8)
    ]

    def cost(room: Room) -> float:
        on_lines = _within(room, RIM, own) + _within(room, RIM, others)
        on_names = sum(_overlap(room, other) for other in taken)
        return LINE_COST * on_lines + BESIDE_COST * _within(room, BESIDE, others) + NAME_COST * on_names

    room = min(rooms, key=cost)
    taken.append(room)
    # A rim of paper keeps the name readable where another line crosses it.
    rim = f'paint-order="stroke"{painted(PAPER, "g-rim", "stroke")} stroke-width="4" stroke-linejoin="round"'
    written = [
        text((room[0] + room[2]) / 2, room[1] + 11 + RELATION_HEIGHT * i, line, anchor="middle")
        for i, line in enumerate(lines)
    ]
    return f"<g {rim}>{''.join(written)}</g>"


def _at(curve: Curve, t: float) -> Point:
    """The point at the share t of an arrow."""
    number = min(int(t * len(curve)), len(curve) - 1)
    s = t * len(curve) - number
    a, b, c, d = curve[number]
    weights = (1 - s) ** 3, 3 * s * (1 - s) ** 2, 3 * s**2 * (1 - s), s**3
    x = sum(w * p[0] for w, p in zip(weights, (a, b, c, d), strict=True))
    return x, sum(w * p[1] for w, p in zip(weights, (a, b, c, d), strict=True))


def _samples(curve: Curve) -> list[Point]:
    """Points along an arrow, close enough that no name slips between them."""
    length = sum(math.dist(a, d) for a, _, _, d in curve)
    count = max(int(1.2 * length / SPACING), 8)
    return [_at(curve, i / count) for i in range(count + 1)]


def _head_room(curve: Curve) -> Room:
    """Where the head of an arrow is."""
    _, _, before, (x, y) = curve[-1]
    return (x - 14, y - 8, x, y + 8) if x >= before[0] else (x, y - 8, x + 14, y + 8)


def _within(room: Room, rim: float, points: Sequence[Point]) -> int:
    left, top, right, bottom = room[0] - rim, room[1] - rim, room[2] + rim, room[3] + rim
    return sum(left <= x <= right and top <= y <= bottom for x, y in points)


def _overlap(a: Room, b: Room) -> float:
    return max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)


def _box(x: float, y: float, width: float, height: float, name: str, lines: Sequence[str], fill: str) -> str:
    ink = INK if fill == NODE else PAPER
    top = y - LINE_HEIGHT * len(lines) / 2 + 12
    written = [
        text(x + width / 2, top + LINE_HEIGHT * i, line, anchor="middle", size=NAME_SIZE, colour=ink, bold=True)
        for i, line in enumerate(lines)
    ]
    return (
        f'<g><title>{escape(name)}</title><rect x="{x:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="8"{painted(fill)} stroke="{RULE}"/>{"".join(written)}</g>'
    )
