"""Three kinds of charts: bars around zero, groups of bars, and lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gamma_kg.drawing.svg import GAIN, LOSS, PALETTE, PAPER, RULE, document, line, polyline, rect, text, text_width

Points = Sequence[tuple[float, float]]
ROW, PLOT_WIDTH = 18, 560


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour of its own for each name; the same names in the same order get the same colours in every chart."""
    return {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(names)}


def difference_bars(values: Mapping[str, float], title: str) -> str:
    """One horizontal bar per name, right of zero when positive; largest first. Zero stands where all bars fit."""
    ordered = sorted(values.items(), key=lambda item: -item[1])
    gain, loss = max([0.0, *values.values()]), -min([0.0, *values.values()])
    scale = (PLOT_WIDTH - 100) / ((gain + loss) or 1)
    left = max((text_width(name) for name in values), default=0) + 12
    middle = left + (50 + loss * scale if loss else 0)
    height = 34 + len(ordered) * ROW
    parts = [text(0, 14, title, bold=True, colour=None, kind="title")]
    parts.append(line(middle, 22, middle, height - 4, kind="axis"))
    for number, (name, value) in enumerate(ordered):
        y = 26 + number * ROW
        length = abs(value) * scale
        x = middle if value >= 0 else middle - length
        at, anchor = (middle + length + 4, "start") if value >= 0 else (middle - length - 4, "end")
        kind, colour = ("gain", GAIN) if value >= 0 else ("loss", LOSS)
        parts.append(text(left - 6, y + 12, name, anchor="end", colour=None))
        parts.append(rect(x, y + 1, length, ROW - 5, fill=colour, kind=kind))
        parts.append(text(at, y + 12, f"{value:+.3f}", anchor=anchor, colour=None))
    return document(left + PLOT_WIDTH, height, title, parts)


def grouped_bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    title: str,
    colours: Mapping[str, str] | None = None,
) -> str:
    """For each group one bar per series that has a value there; NaN is no value. The scale ends above the highest."""
    colours = colours or colours_of(list(series))
    shown = [g for g in range(len(groups)) if not all(math.isnan(values[g]) for values in series.values())]
    y_ticks = ticks(0.0, max((values[g] for values in series.values() for g in shown if values[g] > 0), default=1.0))
    bar, gap, left, top, plot = 34, 30, 46, 34, 200
    present = {g: [name for name, values in series.items() if not math.isnan(values[g])] for g in shown}
    widths = {g: max(bar * len(present[g]) + gap, text_width(groups[g]) + 12) for g in shown}
    width = max(left + sum(widths.values()) + 10, 420, text_width(title) * 1.1)
    parts = [text(0, 14, title, bold=True, colour=None, kind="title")]
    for tick in y_ticks:
        y = top + plot * (1 - tick / y_ticks[-1])
        parts.append(line(left, y, width - 10, y, kind="grid"))
        parts.append(text(left - 6, y + 4, f"{tick:g}", anchor="end", colour=None))
    x = float(left)
    for g in shown:
        start = x + (widths[g] - bar * len(present[g])) / 2
        for place, name in enumerate(present[g]):
            value = series[name][g]
            height, at = plot * value / y_ticks[-1], start + place * bar
            tip = f"{name}, {groups[g]}: {value:.3f}"
            parts.append(rect(at, top + plot - height, bar - 4, height, fill=colours[name], tip=tip))
            shown_value = f"{value:.3f}".lstrip("0")
            parts.append(
                text(at + bar / 2 - 2, top + plot - height - 4, shown_value, anchor="middle", size=11, colour=None)
            )
        parts.append(text(x + widths[g] / 2, top + plot + 16, groups[g], anchor="middle", colour=None))
        x += widths[g]
    for number, name in enumerate(series):
        y = top + plot + 40 + number * 17
        parts.append(rect(left, y - 10, 11, 11, fill=colours[name]))
        parts.append(text(left + 17, y, name, colour=None))
    return document(width, top + plot + 42 + 17 * len(series), title, parts)


def line_chart(title: str, lines: Mapping[str, Points], x_label: str, *, faint: Sequence[str] = ()) -> str:
    """Lines by name over a common x; those named in `faint` stay in the background."""
    names = {name: text_width(name) for name in lines}
    width, height, left, right, top, bottom = 760, 320, 60, max([100.0, *names.values()]) + 24, 34, 42
    xs = [x for points in lines.values() for x, _ in points] or [0.0]
    ys = [y for points in lines.values() for _, y in points] or [0.0]
    x_ticks, y_ticks = ticks(0.0, max(xs)), ticks(min(0.0, *ys), max(ys))
    (x0, x1), (y0, y1) = (x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (x - x0) / (x1 - x0) * (width - left - right),
            height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom),
        )

    parts = [text(left, 20, title, size=15, bold=True)]
    for y in y_ticks:
        _, py = at(x0, y)
        parts.append(line(left, py, width - right, py, colour=RULE))
        parts.append(text(left - 6, py + 4, f"{y:.4g}", anchor="end"))
    for x in x_ticks:
        parts.append(text(at(x, y0)[0], height - bottom + 17, f"{x:.4g}", anchor="middle"))
    parts.append(text((left + width - right) / 2, height - 6, x_label, anchor="middle"))
    for number, (name, colour) in enumerate(colours_of(list(lines)).items()):
        is_faint = name in faint
        points = [at(x, y) for x, y in lines[name]]
        parts.append(polyline(points, colour=colour, width=1 if is_faint else 2, opacity=0.35 if is_faint else 1))
        parts.append(rect(width - right + 10, top + 17 * number, 8, 8, fill=colour))
        parts.append(text(width - right + 22, top + 17 * number + 8, name))
    return document(width, max(height, top + 17 * len(lines) + 8), title, parts, background=PAPER)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers that cover low..high."""
    span = high - low if high > low else 1.0
    rough = span / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * 0.999)
    first = math.floor(low / step + 1e-9)
    last = max(math.ceil(high / step - 1e-9), first + 1)
    return [step * number for number in range(first, last + 1)]
