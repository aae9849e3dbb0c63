"""Where the boxes and arrows of a small graph go: boxes in columns by their distance from the first, arrows between.

An arrow that passes a column gets a place in it like a box, so that no line runs through a name. Boxes of a column are
ordered so that few arrows cross, and every arrow has a point of its own at the side of a box: heads never meet.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SWEEPS = 6
PORT = 20  # pixels between two arrows at the same side of a box, unless told otherwise
ROW_GAP = 32
PASS_HEIGHT = 26  # what an arrow that passes a column takes of it
Point = tuple[float, float]


@dataclass(eq=False)
class Place:
    """A box, or the point where an arrow passes a column (then without a name)."""

    name: str | None
    column: int
    width: float = 0
    height: float = PASS_HEIGHT
    x: float = 0  # left side
    y: float = 0  # middle
    ports: dict[tuple[int, int], float] = field(default_factory=dict)  # (arrow, side −1 or +1) → y


@dataclass(frozen=True)
class Layout:
    """Boxes by name, the points of every arrow from its first to its last, and the size of it all."""

    boxes: dict[str, Place]
    arrows: list[list[Point]]
    width: float
    height: float


def columns_from(first: str, last: str | None, pairs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Column of each name: how many arrows it is away from the first; the last one stands apart on the right."""
    beside: defaultdict[str, list[str]] = defaultdict(list)
    for a, b in pairs:
        beside[a].append(b)
        beside[b].append(a)
    column, waiting = {first: 0}, [first]
    for name in waiting:
        # Nothing is reached through the last one: it would put its neighbours to its right.
        for other in beside[name] if name != last else ():
            if other not in column:
                column[other] = column[name] + 1
                waiting.append(other)
    names = dict.fromkeys([first, *(name for pair in pairs for name in pair), *([last] if last else [])])
    inner = max((column[name] for name in column if name != last), default=0)
    for name in names:
        column.setdefault(name, inner + 1 if name == last else 1)
    if last is not None and last != first:
        column[last] = max(column.values()) + (max(column.values()) in {column[n] for n in names if n != last})
    return column


def lay_out(
    column: Mapping[str, int],
    size: Mapping[str, Point],
    pairs: Sequence[tuple[str, str]],
    gap_width: Mapping[int, float],
    port: float = PORT,
) -> Layout:
    """Places for boxes of the given sizes. `gap_width` is the room that column c leaves to its right, `port` what lies
    between two arrows at the same side of a box."""
    boxes = {name: Place(name, c, *size[name]) for name, c in column.items()}
    chains = [_chain(boxes[a], boxes[b]) for a, b in pairs]
    levels: defaultdict[int, list[Place]] = defaultdict(list)
    for place in boxes.values():
        levels[place.column].append(place)
    for chain in chains:
        for place in chain[1:-1]:
            levels[place.column].append(place)
    _grow_for_ports(chains, port)
    _order(levels, chains)
    _set_y(levels)
    x = 0.0
    for c in range(max(levels, default=0) + 1):
        wide = max((place.width for place in levels[c]), default=0)
        for place in levels[c]:
            # Boxes of a column are equally wide, so that an arrow from one to another bows around those between.
            place.width = wide if place.name is not None else 0
            place.x = x + (wide - place.width) / 2
        x += wide + gap_width.get(c, 0)
    _set_ports(chains, port)
    arrows = [_points(number, chain) for number, chain in enumerate(chains)]
    everything = [place for level in levels.values() for place in level]
    height = max((place.y + place.height / 2 for place in everything), default=0)
    return Layout(boxes, arrows, x - gap_width.get(max(levels, default=0), 0), height)


def _chain(a: Place, b: Place) -> list[Place]:
    """The places that an arrow goes through, from a to b."""
    step = 1 if b.column >= a.column else -1
    return [a, *(Place(None, c) for c in range(a.column + step, b.column, step)), b]


def _sides(chain: Sequence[Place]) -> tuple[int, int]:
    """At which side an arrow leaves its first and reaches its last box; within a column both on the right."""
    if chain[0].column == chain[-1].column:
        return 1, 1
    way = 1 if chain[-1].column > chain[0].column else -1
    return way, -way


def _grow_for_ports(chains: Sequence[Sequence[Place]], port: float) -> None:
    count: defaultdict[tuple[int, int], int] = defaultdict(int)
    for chain in chains:
        for place, side in zip((chain[0], chain[-1]), _sides(chain), strict=True):
            count[id(place), side] += 1
            place.height = max(place.height, port * count[id(place), side] + 8)


def _order(levels: Mapping[int, list[Place]], chains: Sequence[Sequence[Place]]) -> None:
    """Sort each column by the mean position of what it is linked to, back and forth a few times."""
    linked: defaultdict[int, list[Place]] = defaultdict(list)
    for chain in chains:
        for a, b in itertools.pairwise(chain):
            linked[id(a)].append(b)
            linked[id(b)].append(a)
    position = {id(place): float(i) for level in levels.values() for i, place in enumerate(level)}
    for sweep in range(SWEEPS):
        for c in sorted(levels, reverse=bool(sweep % 2)):
            means = {
                id(place): sum(position[id(o)] for o in linked[id(place)]) / len(linked[id(place)])
                if linked[id(place)]
                else position[id(place)]
                for place in levels[c]
            }
            levels[c].sort(key=lambda place: means[id(place)])
            middle = (len(levels[c]) - 1) / 2
            for i, place in enumerate(levels[c]):
                position[id(place)] = i - middle


def _set_y(levels: Mapping[int, list[Place]]) -> None:
    """Columns are centred on the highest one."""
    heights = {c: sum(p.height for p in level) + ROW_GAP * (len(level) - 1) for c, level in levels.items()}
    tallest = max(heights.values(), default=0)
    for c, level in levels.items():
        y = (tallest - heights[c]) / 2
        for place in level:
            place.y = y + place.height / 2
            y += place.height + ROW_GAP


def _set_ports(chains: Sequence[Sequence[Place]], port: float) -> None:
    """Arrows at one side of a box in the order of where they come from."""
    at: defaultdict[tuple[int, int], list[tuple[float, int, Place]]] = defaultdict(list)
    for number, chain in enumerate(chains):
        towards = (chain[1], chain[-2])
        for place, other, side in zip((chain[0], chain[-1]), towards, _sides(chain), strict=True):
            at[id(place), side].append((other.y, number, place))
    for (_, side), arrows in at.items():
        # A loop has two ends at the same side.
        for i, (_, number, place) in enumerate(sorted(arrows, key=lambda arrow: arrow[:2])):
            place.ports.setdefault((number, side), place.y + port * (i - (len(arrows) - 1) / 2))


def _points(number: int, chain: Sequence[Place]) -> list[Point]:
    first, last = chain[0], chain[-1]
    leave, reach = _sides(chain)
    start = (first.x + (first.width if leave > 0 else 0), first.ports[number, leave])
    end = (last.x + (last.width if reach > 0 else 0), last.ports[number, reach])
    return [start, *((place.x, place.y) for place in chain[1:-1]), end]
