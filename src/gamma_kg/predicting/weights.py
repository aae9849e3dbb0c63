"""Weights by name: what ships with the package (`weights/weights.toml`), a checkpoint file, or a public ULTRA file."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from gamma_kg.errors import CheckpointError, did_you_mean
from gamma_kg.nn.checkpoint import Checkpoint, import_ultra, load_checkpoint

# Public ULTRA checkpoints can be named as they are.
ULTRA_SUFFIXES = (".pth", ".pt")


@dataclass(frozen=True)
class Bundled:
    """Weights that ship with the package."""

    name: str
    files: tuple[str, ...]
    about: str
    shares: tuple[float, ...] | None = None
    """How much each file's score counts; equally when None."""


@functools.cache
def bundled() -> Mapping[str, Bundled]:
    """All of them by name; the first is what `from_pretrained()` loads."""
    raw = tomllib.loads((files("gamma_kg") / "weights" / "weights.toml").read_text("utf-8"))
    return {
        name: Bundled(
            name, tuple(facts["files"]), facts["about"], tuple(facts["shares"]) if "shares" in facts else None
        )
        for name, facts in raw.items()
    }


def shares_of(name: str | Path | None) -> tuple[float, ...] | None:
    """How much each of the models behind a bundled name counts; None: equally, or there is one only."""
    found = bundled().get(str(name))
    return None if found is None or Path(str(name)).is_file() else found.shares


def load_weights_of(name: str | Path | None = None) -> list[Checkpoint]:
    """The weights called `name`, the default ones when None: one checkpoint, or those of an ensemble."""
    text = next(iter(bundled())) if name is None else str(name)
    if text in bundled() and not Path(text).is_file():
        found = []
        for file in bundled()[text].files:
            with as_file(files("gamma_kg") / "weights" / file) as path:
                found.append(load_checkpoint(path))
        return found
    if Path(text).suffix in ULTRA_SUFFIXES:
        return [import_ultra(text)]
    if not Path(text).is_file():
        raise CheckpointError(
            f"no checkpoint at {text}, and no bundled weights of that name{did_you_mean(text, bundled())}: wanted a "
            f".safetensors file that gamma wrote, a public ULTRA .pth file, or one of {', '.join(bundled())}"
        )
    return [load_checkpoint(text)]


def load_one(name: str | Path | None = None) -> Checkpoint:
    """Weights to train from or to look into: an ensemble is refused."""
    found = load_weights_of(name)
    if len(found) > 1:
        raise CheckpointError(f"{name} is an ensemble of {len(found)} models: name one of them")
    return found[0]
