"""An entity among its neighbours: facts that point at it on the left, facts that start from it on the right.

One panel per relation with the first few names in it; the arrow between panel and entity is the relation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gamma_kg.explain import shapes
from gamma_kg.explain.shapes import INK, MAX_NAME, MAX_RELATION, NODE, QUIET, short, text_width

ROW, PADDING, GAP, ARM, MARGIN = 22, 9, 14, 190, 16
MAX_PANELS = 9  # a side


@dataclass(frozen=True)
class FactGroup:
    """All facts of an entity with one relation, read from one end."""

    relation: str
    is_head: bool  # the entity is the head of these facts
    count: int
    others: tuple[str, ...]  # the first few entities at the other end


def draw_neighbourhood(name: str, groups: Sequence[FactGroup], link: Callable[[str], str] | None = None) -> str:
    """The picture as an SVG document; `link` gives the address of an entity."""
    sides = [[g for g in groups if g.is_head is is_head] for is_head in (False, True)]
    shown = [sorted(side, key=lambda g: -g.count)[:MAX_PANELS] for side in sides]
    left, right = ([_Panel(group) for group in side] for side in shown)
    colours = shapes.colours_of([group.relation for group in groups])
    heights = [sum(p.height + GAP for p in side) - GAP if side else 0.0 for side in (left, right)]
    left_width, right_width = (max([p.width for p in side], default=0.0) for side in (left, right))
    centre_width = shapes.box_width(name)
    centre_x = MARGIN + (left_width + ARM if left else 0.0)
    middle = MARGIN + max(*heights, 60.0) / 2
    parts: list[str] = []
    for side, height, is_right in ((left, heights[0], False), (right, heights[1], True)):
        y = middle - height / 2
        for panel in side:
            x = centre_x + centre_width + ARM if is_right else MARGIN + left_width - panel.width
            anchor = centre_x + centre_width if is_right else centre_x
            parts.append(panel.arrow(x, y, anchor, middle, is_right, name, colours[panel.group.relation]))
            parts.append(panel.draw(x, y, link))
            y += panel.height + GAP
    parts.append(shapes.box(centre_x, middle, centre_width, name, shapes.HEAD, shapes.PAPER))
    width = centre_x + centre_width + (ARM + right_width if right else 0.0) + MARGIN
    height = 2 * (middle - MARGIN) + 2 * MARGIN
    hidden = sum(len(side) - len(few) for side, few in zip(sides, shown, strict=True))
    if hidden:
        parts.append(shapes.text(MARGIN, height + 6, f"and {hidden} more relations", QUIET, "start", 12))
        height += 16
    return shapes.document(max(width, 320), height, f"Neighbours of {name}", "".join(parts))


class _Panel:
    """One relation's names, under each other."""

    def __init__(self, group: FactGroup) -> None:
        self.group = group
        more = group.count - len(group.others)
        self.rest = f"and {more:,} more" if more > 0 else ""
        lines = [short(other, MAX_NAME) for other in group.others] + ([self.rest] if self.rest else [])
        self.width = max(text_width(one) for one in lines) + 2 * PADDING
        self.height = ROW * len(lines) + PADDING

    def draw(self, x: float, y: float, link: Callable[[str], str] | None) -> str:
        parts = [
            f"<rect class='g-node' x='{x:.1f}' y='{y:.1f}' width='{self.width:.1f}' height='{self.height:.1f}' rx='8' "
            f"fill='{NODE}' stroke='{shapes.LINE}'/>"
        ]
        for number, other in enumerate(self.group.others):
            row = shapes.text(x + PADDING, y + ROW * number + 18, short(other, MAX_NAME), INK, "start", 13, 500)
            row = f"<g><title>{shapes.escape(other)}</title>{row}</g>"
            parts.append(row if link is None else shapes.linked(row, link(other), other))
        if self.rest:
            below = y + ROW * len(self.group.others) + 18
            parts.append(shapes.text(x + PADDING, below, self.rest, QUIET, "start", 12))
        return "".join(parts)

    def arrow(self, x: float, y: float, anchor: float, middle: float, is_right: bool, name: str, colour: str) -> str:
        """From the head of the facts to their tail."""
        own_y, side_x = y + self.height / 2, x if is_right else x + self.width
        bend = (side_x - anchor) * 0.45
        # The tip is at the tail: the panel on the right, the entity on the left.
        tip_x, tip_y = (side_x, own_y) if is_right else (anchor, middle)
        start, end = (anchor, middle), (side_x - 7, own_y)
        if not is_right:
            start, end = (anchor - 7, middle), (side_x, own_y)
        curve = (
            f"M{start[0]:.1f},{start[1]:.1f} C{start[0] + bend:.1f},{start[1]:.1f} "
            f"{end[0] - bend:.1f},{end[1]:.1f} {end[0]:.1f},{end[1]:.1f}"
        )
        words = short(self.group.relation, MAX_RELATION)
        label = shapes.text(
            side_x - 12 if is_right else side_x + 12, own_y - 7, words, colour, "end" if is_right else "start", 12,
            rim=True,
        )  # fmt: skip
        ends = (name, "…") if is_right else ("…", name)
        fact = f"({ends[0]}, {self.group.relation}, {ends[1]}): {self.group.count:,} facts"
        return shapes.arrow(curve, (tip_x, tip_y, -1), 1.6, colour, fact, label)
