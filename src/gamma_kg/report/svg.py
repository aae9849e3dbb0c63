"""Two kinds of plots as SVG text: bars around zero, and groups of bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#3b6ea8", "#c8743a", "#4f9a63", "#8a64a8", "#b0525c", "#6f7f8f")
ROW = 17
LABEL_WIDTH, PLOT_WIDTH = 150, 560


def difference_bars(values: Mapping[str, float], title: str) -> str:
    """One horizontal bar per name, right of zero when positive; largest first."""
    ordered = sorted(values.items(), key=lambda item: -item[1])
    reach = max((abs(value) for value in values.values()), default=0) or 1
    middle = LABEL_WIDTH + PLOT_WIDTH / 2
    parts = []
    for i, (name, value) in enumerate(ordered):
        y = 24 + i * ROW
        length = abs(value) / reach * (PLOT_WIDTH / 2 - 50)
        x = middle if value >= 0 else middle - length
        at, anchor = (middle + length + 4, "start") if value >= 0 else (middle - length - 4, "end")
        kind, colour = ("gain", "#3b8a5a") if value >= 0 else ("loss", "#b8524f")
        parts.append(_text(LABEL_WIDTH - 6, y + 10, name, "end"))
        box = f'x="{x:.1f}" y="{y + 1}" width="{length:.1f}" height="{ROW - 5}"'
        parts.append(f'<rect class="{kind}" fill="{colour}" {box}/>')
        parts.append(_text(at, y + 10, f"{value:+.3f}", anchor))
    height = 30 + len(ordered) * ROW
    axis = f'<line class="axis" x1="{middle}" x2="{middle}" y1="20" y2="{height - 4}"/>'
    return _svg(LABEL_WIDTH + PLOT_WIDTH, height, title, axis + "".join(parts))


def grouped_bars(groups: Sequence[str], series: Mapping[str, Sequence[float]], title: str) -> str:
    """For each group one bar per series, on a scale from 0 to 1; NaN leaves a gap."""
    bar, gap, left, top, plot = 22, 30, 46, 34, 200
    # A letter of the label is about six units wide.
    group_width = max(bar * len(series) + gap, 6 * max(map(len, groups)) + 12)
    width = max(left + group_width * len(groups) + 10, 420)
    parts = []
    for step in range(0, 11, 2):
        y = top + plot * (1 - step / 10)
        parts.append(f'<line class="grid" x1="{left}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(left - 6, y + 4, f"{step / 10:.1f}", "end"))
    for g, group in enumerate(groups):
        start = left + (g + 0.5) * group_width - bar * len(series) / 2
        for s, (name, values) in enumerate(series.items()):
            if math.isnan(values[g]):
                continue
            height, x = plot * values[g], start + s * bar
            colour = COLOURS[s % len(COLOURS)]
            tip = f"<title>{escape(f'{name}, {group}: {values[g]:.3f}')}</title>"
            box = f'x="{x:.1f}" y="{top + plot - height:.1f}" width="{bar - 3}" height="{height:.1f}"'
            parts.append(f'<rect {box} fill="{colour}">{tip}</rect>')
            parts.append(_text(x + bar / 2 - 1, top + plot - height - 3, f"{values[g]:.2f}", "middle", small=True))
        parts.append(_text(start + bar * len(series) / 2, top + plot + 16, group, "middle"))
    for s, name in enumerate(series):
        y = top + plot + 38 + s * 16
        parts.append(f'<rect x="{left}" y="{y - 9}" width="10" height="10" fill="{COLOURS[s % len(COLOURS)]}"/>')
        parts.append(_text(left + 16, y, name, "start"))
    return _svg(width, top + plot + 40 + 16 * len(series), title, "".join(parts))


def _svg(width: float, height: float, title: str, body: str) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    heading = f'<text class="title" x="0" y="12">{escape(title)}</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{heading}{body}</svg>'


def _text(x: float, y: float, text: str, anchor: str, small: bool = False) -> str:
    kind = ' class="small"' if small else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
