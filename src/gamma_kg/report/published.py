"""Figures that others published, from `published.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

Metrics = Mapping[str, float]
PAPER_MODELS = ("ULTRA", "GAMMA")  # the columns of the GAMMA paper


@dataclass(frozen=True)
class Report:
    """A public run of another model: `results[slug]`, and `tails[slug]` where only tails were asked for.

    `origin`: who ran what, where it is written, and what differs from the ruler of our own results.
    """

    origin: str
    results: Mapping[str, Metrics]
    tails: Mapping[str, Metrics] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """`results[slug][model]`, `groups[model][group]`, `pattern_groups[model][pattern]`: MRR and Hits@10.

    `patterns[slug][pattern]`: relations with the pattern, and test triples of these relations.
    `presets[preset]`: what the paper calls it in `groups`. `others[model][group]`: mean MRR that other reports give.
    `reports[model]`: public runs of other models, graph by graph.
    """

    origin: str
    corrections: str
    results: Mapping[str, Mapping[str, Metrics]]
    groups: Mapping[str, Mapping[str, Metrics]]
    pattern_groups: Mapping[str, Mapping[str, Metrics]]
    patterns: Mapping[str, Mapping[str, list[int]]]
    presets: Mapping[str, str]
    others: Mapping[str, Mapping[str, float]]
    reports: Mapping[str, Report]


@functools.cache
def published() -> Published:
    """The figures of the GAMMA paper, its own model and its re-run of ULTRA, and public runs of other models."""
    raw = tomllib.loads(resources.files(__package__).joinpath("published.toml").read_text("utf-8"))
    paper = raw.pop("paper")
    reports = {model: Report(**report) for model, report in raw.pop("reports").items()}
    return Published(origin=paper["origin"], corrections=paper["corrections"], reports=reports, **raw)
