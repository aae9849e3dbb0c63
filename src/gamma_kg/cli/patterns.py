"""`gamma patterns`: symmetric, anti-symmetric, inverse and composition relations of benchmark graphs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from gamma_kg.cli.evaluate import DataDirOption


def patterns(
    datasets: Annotated[list[str], typer.Argument(help="Names of sets, or folders with train and test files.")],
    min_support: Annotated[int | None, typer.Option(help="Least support of a rule (default 1).")] = None,
    min_confidence: Annotated[float | None, typer.Option(help="Least confidence of a rule (default 0.97).")] = None,
    data_dir: DataDirOption = None,
    json_lines: Annotated[bool, typer.Option("--json", help="One JSON object per set on stdout.")] = False,
    relations: Annotated[bool, typer.Option("--relations", help="Also name the relations of each pattern.")] = False,
) -> None:
    """Count relations that show a pattern in all files of a set, and test triples of these relations.

    A rule needs both thresholds; with the defaults the counts come closest to the paper's table, shown beside ours.
    """
    import numpy as np

    from gamma_kg.analysis.patterns import MIN_CONFIDENCE, MIN_SUPPORT, PATTERNS, find_patterns
    from gamma_kg.data.benchmark import load_benchmark
    from gamma_kg.errors import ConfigError
    from gamma_kg.report.published import published

    if min_confidence is not None and not 0 < min_confidence <= 1:
        raise ConfigError(f"--min-confidence must lie above 0 and be at most 1, got {min_confidence:g}")
    support = MIN_SUPPORT if min_support is None else min_support
    confidence = MIN_CONFIDENCE if min_confidence is None else min_confidence
    if not json_lines:
        print(f"rules with support of {support} or more and confidence of {confidence:g} or more")
        print("each cell: relations / test triples, and (the paper's) where it has them")
        print(f"{'set':<18}" + "".join(f"{name:>28}" for name in PATTERNS))
    for name in datasets:
        benchmark = load_benchmark(name, data_dir)
        triples, entities, vocabulary = benchmark.all_triples()
        found = find_patterns(
            np.concatenate(list(triples.values())),
            len(entities),
            len(vocabulary),
            min_support=support,
            min_confidence=confidence,
        )
        in_test = found.triples_of(triples["test"])
        counts = {pattern: [number, int(in_test[pattern].sum())] for pattern, number in found.counts().items()}
        names = {
            pattern: [vocabulary[i] for i in np.flatnonzero(shows).tolist()] for pattern, shows in found.shows.items()
        }
        paper = published().patterns.get(benchmark.name, {})
        if json_lines:
            record = {"dataset": benchmark.name, "min_support": support, "min_confidence": confidence}
            shown = {"patterns": counts, "paper": paper or None} | ({"relations": names} if relations else {})
            print(json.dumps(record | shown, ensure_ascii=False))
            continue
        cells = []
        for pattern in PATTERNS:
            ours = f"{counts[pattern][0]} / {counts[pattern][1]:,}"
            theirs = f" ({paper[pattern][0]} / {paper[pattern][1]:,})" if pattern in paper else ""
            cells.append(f"{ours + theirs:>28}")
        print(f"{benchmark.name:<18}" + "".join(cells), flush=True)
        if relations:
            for pattern in PATTERNS:
                print(f"  {pattern}: {', '.join(names[pattern]) or 'none'}")
