"""An entity among its neighbours: facts that point at it on the left, facts that start from it on the right.

One panel per relation with the first few names in it; the arrow between panel and entity is the relation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gamma_kg.drawing.network import wrapped
from gamma_kg.drawing.svg import (
    HEAD,
    NODE,
    PALETTE,
    PAPER,
    QUIET,
    RULE,
    document,
    escape,
    line,
    linked,
    painted,
    rect,
    text,
    text_width,
)

NAME_LETTERS, RELATION_LETTERS = 26, 24
ROW, PADDING, GAP, MARGIN = 22, 9, 14, 16
FAN, TIP = 100, 24  # of an arm: where its arrows part, and the end of an arrow that no name stands on
SHORT_ARM = 34  # of a narrow picture
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
    relations = dict.fromkeys(group.relation for group in groups)
    colours = {relation: PALETTE[number % len(PALETTE)] for number, relation in enumerate(relations)}
    heights = [sum(p.height + GAP for p in side) - GAP if side else 0.0 for side in (left, right)]
    left_width, right_width = (max([p.width for p in side], default=0.0) for side in (left, right))
    left_arm, right_arm = (FAN + TIP + max([p.written_width for p in side], default=0.0) for side in (left, right))
    centre = wrapped(name, NAME_LETTERS)
    centre_width = max(text_width(one, 13) for one in centre) + 26
    centre_x = MARGIN + (left_width + left_arm if left else 0.0)
    middle = MARGIN + max(*heights, 60.0) / 2
    parts, labels = [], []  # what is written comes last
    for side, height, is_right in ((left, heights[0], False), (right, heights[1], True)):
        y = middle - height / 2
        for panel in side:
            x = centre_x + centre_width + right_arm if is_right else MARGIN + left_width - panel.width
            anchor = centre_x + centre_width if is_right else centre_x
            parts.append(panel.arrow(x, y, anchor, middle, is_right, name, colours[panel.group.relation]))
            labels += [panel.label(x, y, is_right), panel.draw(x, y, link)]
            y += panel.height + GAP
    parts += [*labels, _centre(name, centre_x, middle - _tall(centre) / 2, centre_width)]
    width = centre_x + centre_width + (right_arm + right_width if right else 0.0) + MARGIN
    height = 2 * (middle - MARGIN) + 2 * MARGIN
    hidden = sum(len(side) - len(few) for side, few in zip(sides, shown, strict=True))
    if hidden:
        parts.append(text(MARGIN, height + 6, f"and {hidden} more relations", colour=QUIET))
        height += 16
    return document(max(width, 320), height, f"Neighbours of {name}", parts, background=PAPER)


def draw_narrow_neighbourhood(name: str, groups: Sequence[FactGroup], link: Callable[[str], str] | None = None) -> str:
    """The same for a phone: the entity on top, its relations one under the other."""
    shown = sorted(groups, key=lambda g: (not g.is_head, -g.count))[: 2 * MAX_PANELS]
    relations = dict.fromkeys(group.relation for group in groups)
    colours = {relation: PALETTE[number % len(PALETTE)] for number, relation in enumerate(relations)}
    centre = wrapped(name, NAME_LETTERS)
    centre_width = max(text_width(one, 13) for one in centre) + 26
    trunk, x = MARGIN + 18, MARGIN + 18 + SHORT_ARM
    width, y = MARGIN + centre_width, MARGIN + _tall(centre) + GAP
    parts, ends = [], y
    for group in shown:
        panel, written = _Panel(group), wrapped(group.relation, NAME_LETTERS)
        for one in written:
            parts.append(text(x, y + 12, one, bold=True))
            y += 16
        parts += [panel.branch(trunk, x, y + 2, name, colours[group.relation]), panel.draw(x, y + 2, link)]
        ends, y = y + 2 + panel.height / 2, y + 2 + panel.height + GAP
        width = max(width, x + panel.width, x + max(text_width(one) for one in written))
    if len(groups) > len(shown):
        parts.append(text(x, y + 6, f"and {len(groups) - len(shown)} more relations", colour=QUIET))
        y += 20
    parts.insert(0, line(trunk, MARGIN, trunk, ends, kind="g-line"))
    parts.append(_centre(name, MARGIN, MARGIN, centre_width))
    return document(max(width + MARGIN, 320), y, f"Neighbours of {name}", parts, background=PAPER)


def _tall(lines: Sequence[str]) -> float:
    return 16 * len(lines) + 14


def _centre(name: str, x: float, y: float, width: float) -> str:
    """The entity itself, in a box that begins at (x, y)."""
    lines = wrapped(name, NAME_LETTERS)
    parts = [rect(x, y, width, _tall(lines), fill=HEAD, tip=name, radius=8)]
    for number, one in enumerate(lines):
        parts.append(text(x + width / 2, y + 19 + 16 * number, one, anchor="middle", size=13, colour=PAPER, bold=True))
    return "".join(parts)


class _Panel:
    """One relation's names, under each other."""

    def __init__(self, group: FactGroup) -> None:
        self.group = group
        more = group.count - len(group.others)
        self.rest = f"and {more:,} more" if more > 0 else ""
        self.names = [(other, wrapped(other, NAME_LETTERS)) for other in group.others]
        lines = [one for _, written in self.names for one in written] + ([self.rest] if self.rest else [])
        self.width = max(text_width(one, 13) for one in lines) + 2 * PADDING
        self.height = ROW * len(lines) + PADDING
        self.written = wrapped(group.relation, RELATION_LETTERS)
        self.written_width = max(text_width(one) for one in self.written)

    def draw(self, x: float, y: float, link: Callable[[str], str] | None) -> str:
        box = f'x="{x:.1f}" y="{y:.1f}" width="{self.width:.1f}" height="{self.height:.1f}" rx="8"'
        parts = [f'<rect {box}{painted(NODE)} stroke="{RULE}"/>']
        below = y + 18
        for other, written in self.names:
            rows = "".join(text(x + PADDING, below + ROW * i, one, size=13) for i, one in enumerate(written))
            row = f"<g><title>{escape(other)}</title>{rows}</g>"
            parts.append(row if link is None else linked(row, link(other), other))
            below += ROW * len(written)
        if self.rest:
            parts.append(text(x + PADDING, below, self.rest, colour=QUIET))
        return "".join(parts)

    def arrow(self, x: float, y: float, anchor: float, middle: float, is_right: bool, name: str, colour: str) -> str:
        """From the head of the facts to their tail."""
        own_y, side_x = y + self.height / 2, x if is_right else x + self.width
        # Arrows part close to the entity and then run level, so that none crosses the name of another.
        level_x = anchor + (FAN if is_right else -FAN)
        bend = (level_x - anchor) * 0.5
        # The tip is at the tail: the panel on the right, the entity on the left.
        tip_x, tip_y = (side_x, own_y) if is_right else (anchor, middle)
        start, end = (anchor, middle), (side_x - 7, own_y)
        if not is_right:
            start, end = (anchor - 7, middle), (side_x, own_y)
        curve = (
            f"M{start[0]:.1f},{start[1]:.1f} C{start[0] + bend:.1f},{start[1]:.1f} "
            f"{level_x - bend:.1f},{own_y:.1f} {level_x:.1f},{own_y:.1f} H{end[0]:.1f}"
        )
        return self._drawn(curve, f"M{tip_x:.1f},{tip_y:.1f} l-9,-5 l0,10 Z", is_right, name, colour)

    def branch(self, trunk_x: float, x: float, y: float, name: str, colour: str) -> str:
        """The arrow of a narrow picture: straight, between the trunk below the entity and the panel."""
        own_y, is_head = y + self.height / 2, self.group.is_head
        tip = f"M{x:.1f},{own_y:.1f} l-9,-5 l0,10 Z" if is_head else f"M{trunk_x:.1f},{own_y:.1f} l9,-5 l0,10 Z"
        return self._drawn(f"M{trunk_x:.1f},{own_y:.1f} H{x:.1f}", tip, is_head, name, colour)

    def label(self, x: float, y: float, is_right: bool) -> str:
        """The relation, beside the panel's end of its arrow."""
        label_x, anchor_at = (x - 12, "end") if is_right else (x + self.width + 12, "start")
        first = y + self.height / 2 - 7 - 13 * (len(self.written) - 1)
        label = "".join(text(label_x, first + 13 * i, one, anchor=anchor_at) for i, one in enumerate(self.written))
        rim = f'paint-order="stroke"{painted(PAPER, "g-rim", "stroke")} stroke-width="4" stroke-linejoin="round"'
        return f"<g {rim}>{label}</g>"

    def _drawn(self, line: str, tip: str, is_head: bool, name: str, colour: str) -> str:
        ends = (name, "…") if is_head else ("…", name)
        fact = f"({ends[0]}, {self.group.relation}, {ends[1]}): {self.group.count:,} facts"
        return (
            f'<g class="g-arrow"><title>{escape(fact)}</title>'
            f'<path d="{line}" fill="none"{painted(colour, "g-stroke", "stroke")} stroke-width="1.6"/>'
            f'<path d="{tip}"{painted(colour, "g-fill")}/></g>'
        )
