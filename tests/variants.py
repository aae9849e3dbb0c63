"""Every model that tests of all variants go through: the published ones, and what the options can do beyond them."""

from __future__ import annotations

from gamma_kg.nn.config import PRESETS, GammaConfig

THREE = GammaConfig(branches=("complex", "split-complex", "real"), relation_encoders="own")
VARIANTS = {
    **PRESETS,
    "own relation encoders": THREE,
    "own relation encoders, no query": THREE.with_options(attention="no-query"),
    "own relation encoders, no key": THREE.with_options(attention="no-key"),
    "own relation encoders, sum": THREE.with_options(combine="sum"),
}
