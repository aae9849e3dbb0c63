"""Loss and validation curves of a run as SVG, in an HTML page that needs nothing else; PNG by matplotlib."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from gamma_kg.errors import ConfigError
from gamma_kg.io.atomic import write_text, write_whole
from gamma_kg.training.run_folder import RunFolder

Points = Sequence[tuple[float, float]]
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a7ea4")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 320, 60, 150, 34, 40


def curves(folder: RunFolder) -> dict[str, dict[str, Points]]:
    """Charts by title, each with its lines by name; x is minutes of training."""
    train = list(folder.records("train"))
    valid = list(folder.records("validation"))
    losses = [(record["seconds"] / 60, float(record["loss"])) for record in train]
    charts: dict[str, dict[str, Points]] = {"Training loss": {"batch": losses, "smoothed": smoothed(losses)}}
    if valid:
        lines: dict[str, Points] = {"mean": [(r["seconds"] / 60, float(r["mean"])) for r in valid]}
        for name in valid[-1]["mrr"]:
            lines[name] = [(r["seconds"] / 60, float(r["mrr"][name])) for r in valid if name in r["mrr"]]
        charts["Validation MRR"] = lines
    charts["Learning rate"] = {"rate": [(r["seconds"] / 60, float(r["learning_rate"])) for r in train]}
    return charts


def smoothed(points: Points, keep: float = 0.9) -> Points:
    """Exponentially smoothed, without the pull of the first value."""
    found: list[tuple[float, float]] = []
    total = weight = 0.0
    for x, y in points:
        total, weight = keep * total + y, keep * weight + 1
        found.append((x, total / weight))
    return found


def svg(title: str, lines: Mapping[str, Points]) -> str:
    """One chart."""
    xs = [x for points in lines.values() for x, _ in points] or [0.0]
    ys = [y for points in lines.values() for _, y in points] or [0.0]
    x_ticks, y_ticks = ticks(0.0, max(xs)), ticks(min(0.0, *ys), max(ys))
    (x0, x1), (y0, y1) = (x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (x - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>{html.escape(title)}</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="600">{html.escape(title)}</text>'
    ]
    for y in y_ticks:
        _, py = at(x0, y)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py:.1f}" y2="{py:.1f}" stroke="#d8dee4"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{py + 4:.1f}" text-anchor="end">{y:.4g}</text>')
    for x in x_ticks:
        px, _ = at(x, y0)
        parts.append(f'<text x="{px:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:.4g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">minutes</text>')
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(x, y) for x, y in points))
        width, opacity = ("1", "0.35") if name == "batch" else ("2", "1")
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" opacity="{opacity}"/>'
        )
        y_label = TOP + 16 * number + 8
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{y_label}" fill="{colour}">{html.escape(name)}</text>')
    return "".join(parts) + "</svg>"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover low..high."""
    span = high - low if high > low else 1.0
    rough = span / count
    unit = 10.0 ** len(str(int(rough))) / 10 if rough >= 1 else 10.0 ** -_leading_zeros(rough)
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * 0.999)
    start = step * (low // step)
    found = [start]
    while found[-1] < high - 1e-9 * span or len(found) < 2:
        found.append(start + step * len(found))
    return found


def _leading_zeros(value: float) -> int:
    places = 1
    while value * 10**places < 1 and places < 12:
        places += 1
    return places


def write_html(folder: RunFolder, out: Path) -> None:
    """A page with all charts."""
    charts = curves(folder)
    name = html.escape(folder.path.resolve().name)
    body = "".join(f"<figure>{svg(title, lines)}</figure>" for title, lines in charts.items())
    style = "body{font-family:system-ui,sans-serif;max-width:820px;margin:2rem auto}figure{margin:1rem 0}"
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Run {name}</title>'
        f"<style>{style}</style><h1>Run {name}</h1>{body}</html>\n"
    )
    write_text(out, page)


def write_svg(folder: RunFolder, out: Path) -> None:
    """The validation chart (the loss where nothing was validated) alone."""
    charts = curves(folder)
    title = "Validation MRR" if "Validation MRR" in charts else "Training loss"
    write_text(out, svg(title, charts[title]) + "\n")


def write_png(folder: RunFolder, out: Path) -> None:
    """All charts below each other, by matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise ConfigError("a PNG needs matplotlib: pip install 'gamma-kg[track]', or ask for .html or .svg") from None
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    charts = curves(folder)
    figure, axes = plt.subplots(len(charts), 1, figsize=(8, 3.2 * len(charts)), squeeze=False)
    for axis, (title, lines) in zip(axes[:, 0], charts.items(), strict=True):
        for number, (name, points) in enumerate(lines.items()):
            faint = name == "batch"
            colour = COLOURS[number % len(COLOURS)]
            axis.plot(
                *zip(*points, strict=True), label=name, color=colour, alpha=0.35 if faint else 1, lw=1 if faint else 2
            )
        axis.set(title=title, xlabel="minutes")
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    write_whole(out, lambda file: figure.savefig(file, format="png", dpi=120))
    plt.close(figure)


WRITERS = {".html": write_html, ".svg": write_svg, ".png": write_png}


def write_curves(folder: RunFolder, out: Path) -> None:
    """Draw the run; the ending of `out` says as what."""
    if out.suffix not in WRITERS:
        raise ConfigError(f"curves can be drawn as {', '.join(WRITERS)}, not {out.suffix or out.name!r}")
    WRITERS[out.suffix](folder, out)
