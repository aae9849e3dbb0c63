"""`gamma develop`: the development suite, which decides between checkpoints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gamma_kg.cli.options import DeviceOption


def develop(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Checkpoints, or names such as gamma-2, frequency; else the bundled ones."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results; what is there is not ranked again.")] = Path(
        "runs/development"
    ),
    graphs: Annotated[Path | None, typer.Option(help="Folder with the suite's own files of triples.")] = None,
    triples: Annotated[
        int | None, typer.Option(help="Validation triples of each set; the suite's own number else.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Folder with one sub-folder per set.")] = None,
    device: DeviceOption = "cpu",
) -> None:
    """Mean MRR over the validation triples of many unlike sets, the same weight for each. Test sets are never read."""
    from gamma_kg.evaluation.development import develop as run
    from gamma_kg.evaluation.metrics import bootstrap_interval
    from gamma_kg.predicting.models import resolve_model

    found = {}
    for name in models or ["bundled"]:
        named = resolve_model(None if name == "bundled" else name, device)
        label = name if named.name == Path(name).stem and name in found else named.name
        say = (lambda line, label=label: print(f"{label}  {line}", file=sys.stderr)) if sys.stderr.isatty() else None
        found[label if label not in found else name] = run(
            named, out, data_dir=data_dir, graphs=graphs, triples=triples, report=say
        )
    first_name, first = next(iter(found.items()))
    width = max(12, *(len(name) for name in found)) + 2
    print(f"{'set':<16}" + "".join(f"{name:>{width}}" for name in found))
    for group, names in first.groups.items():
        for name in names:
            print(f"{name:<16}" + "".join(f"{one.mrr[name]:>{width}.4f}" for one in found.values()))
        print(f"{'= ' + group:<16}" + "".join(f"{one.group_mean(group):>{width}.4f}" for one in found.values()))
    print(f"{'MEAN':<16}" + "".join(f"{one.mean:>{width}.4f}" for one in found.values()))
    for name in first.reversed:
        print(f"{'rev ' + name:<16}" + "".join(f"{one.reversed[name][0]:>{width}.3f}" for one in found.values()))
    for name, one in list(found.items())[1:]:
        difference = [one.mrr[key] - first.mrr[key] for key in first.mrr]
        low, high = bootstrap_interval(difference)
        won = sum(d > 0 for d in difference)
        mean = sum(difference) / len(difference)
        print(f"{name} − {first_name}: {mean:+.4f} ({low:+.4f} to {high:+.4f}), ahead on {won} of {len(difference)}")
    if first.absent:
        print(f"left out, not at hand: {', '.join(first.absent)}")
