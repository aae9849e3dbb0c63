"""What a model has seen of a benchmark, by the graphs it was trained on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from gamma_kg.data.catalog import PRETRAINING, catalog

# Training graphs beyond the three of the catalogue, and the sets of their families.
FAMILIES = {"nell995": ("nell*", "nl-*", "fbnell"), "dbpedia50": ("db100k",)}
EVERYTHING = "*"
# Public ULTRA checkpoints by file name. ultra_50g saw nearly all of the benchmark's training graphs.
ULTRA_TRAINED_ON = {
    "ultra_3g": PRETRAINING,
    "ultra_4g": (*PRETRAINING, "nell995"),
    "ultra_50g": (EVERYTHING,),
    "ultraquery": ("fb15k237",),
}


def leakage_of(slug: str, trained_on: Collection[str]) -> str:
    """One of "trained-on", "related" (its test triples may occur in a training graph), "free" and "unknown"."""
    if EVERYTHING in trained_on or slug in trained_on:
        return "trained-on"
    if slug not in catalog():
        return "unknown"
    # The catalogue's word is about the three pre-training graphs together.
    if any(name in PRETRAINING for name in trained_on) and catalog()[slug].leakage != "free":
        return "related"
    families = (pattern for name in trained_on for pattern in FAMILIES.get(name.removesuffix(".txt"), ()))
    return "related" if _matches(slug, families) else "free"


def _matches(slug: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(slug, pattern) for pattern in patterns)
