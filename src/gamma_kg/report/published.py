"""Figures that others published, from `published.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Published:
    """`results[slug][model]`, `groups[model][group]`, `pattern_groups[model][pattern]`: MRR and Hits@10.

    `patterns[slug][pattern]`: relations with the pattern, and test triples of these relations.
    `presets[preset]`: what the paper calls it in `groups`. `others[model][group]`: mean MRR that other reports give.
    """

    source: str
    corrections: str
    results: Mapping[str, Mapping[str, Metrics]]
    groups: Mapping[str, Mapping[str, Metrics]]
    pattern_groups: Mapping[str, Mapping[str, Metrics]]
    patterns: Mapping[str, Mapping[str, list[int]]]
    presets: Mapping[str, str]
    others: Mapping[str, Mapping[str, float]]


@functools.cache
def published() -> Published:
    """The figures of the GAMMA paper: its own model and its re-run of ULTRA."""
    raw = tomllib.loads(resources.files(__package__).joinpath("published.toml").read_text("utf-8"))
    source = raw.pop("source")
    return Published(source=source["text"], corrections=source["corrections"], **raw)
