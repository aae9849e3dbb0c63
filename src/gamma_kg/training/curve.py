"""Loss and validation curves of a run as SVG, in an HTML page that needs nothing else; PNG by matplotlib."""

from __future__ import annotations

import html
from pathlib import Path

from gamma_kg.drawing.charts import Points, colours_of, line_chart
from gamma_kg.errors import ConfigError
from gamma_kg.io.atomic import write_text, write_whole
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.run_folder import RunFolder

FAINT = ("batch",)  # every single loss, behind the smoothed line


def curves(folder: RunFolder) -> dict[str, dict[str, Points]]:
    """Charts by title, each with its lines by name; x is minutes of training."""
    try:
        return _curves(folder)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise TrainingError(f"{folder.log_path} is damaged: {type(error).__name__} {error}") from None


def _curves(folder: RunFolder) -> dict[str, dict[str, Points]]:
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


def _chart(title: str, lines: dict[str, Points]) -> str:
    return line_chart(title, lines, "minutes", faint=FAINT)


def write_html(folder: RunFolder, out: Path) -> None:
    """A page with all charts."""
    charts = curves(folder)
    name = html.escape(folder.path.resolve().name)
    body = "".join(f"<figure>{_chart(title, lines)}</figure>" for title, lines in charts.items())
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
    write_text(out, _chart(title, charts[title]) + "\n")


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
        for name, colour in colours_of(list(lines)).items():
            look = {"alpha": 0.35, "lw": 1} if name in FAINT else {"alpha": 1, "lw": 2}
            axis.plot(*zip(*lines[name], strict=True), label=name, color=colour, **look)
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
