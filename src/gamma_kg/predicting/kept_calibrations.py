"""Calibrations on disk, one small file each: fitted once per graph and model, used by every command from then on.

A store has them inside; for graphs from files they lie in the user's cache (`GAMMA_CACHE`, else the usual place).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gamma_kg.data.catalog import cache_folder
from gamma_kg.errors import GammaError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.io.atomic import write_text
from gamma_kg.io.sealed import parsed, seal, unsealed
from gamma_kg.predicting.calibration import Calibration

# Part of every name: what was fitted in another way is not read again.
FORMAT = 4


class KeptCalibrations:
    """The calibrations of one model, in memory and on disk.

    One per graph, budget of triples (answers from a neighbourhood have a map of their own) and use of rules.
    """

    def __init__(self, fingerprint: Callable[[], str]) -> None:
        self._fingerprint = fingerprint
        self._graphs: weakref.WeakKeyDictionary[KnowledgeGraph, dict[tuple[int | None, bool], Calibration | None]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, kg: KnowledgeGraph, triples: int | None, rules: bool) -> Calibration | None:
        """What was found for this graph, now or earlier; None if nothing was."""
        known = self._graphs.setdefault(kg, {})
        if (triples, rules) not in known:
            known[triples, rules] = kept(self._path(kg, triples, rules))
        return known[triples, rules]

    def adopt(self, kg: KnowledgeGraph, triples: int | None, rules: bool, calibration: Calibration) -> None:
        """Use it in this program."""
        self._graphs.setdefault(kg, {})[triples, rules] = calibration

    def keep(self, kg: KnowledgeGraph, triples: int | None, rules: bool, calibration: Calibration) -> None:
        """Use it in this program and in every later one."""
        self.adopt(kg, triples, rules, calibration)
        keep(self._path(kg, triples, rules), calibration)

    def _path(self, kg: KnowledgeGraph, triples: int | None, rules: bool) -> Path:
        return calibration_path(kg, model=self._fingerprint(), local=triples, rules=rules)


def calibration_path(kg: KnowledgeGraph, **parts: Any) -> Path:
    """Where the calibration of a graph is kept; `parts` are all else that decides it."""
    axioms = [] if kg.report is None else sorted(kg.report.axioms)
    decisive = json.dumps({"format": FORMAT, "graph": kg.fingerprint(), "axioms": axioms, **parts}, sort_keys=True)
    name = f"{hashlib.sha256(decisive.encode()).hexdigest()[:40]}.json"
    return (kg.path / "calibrations" if kg.path is not None and kg.path.is_dir() else _folder()) / name


def keep(path: Path, calibration: Calibration) -> None:
    """Writes it down; where nothing can be written it stays in memory only."""
    with contextlib.suppress(GammaError):
        write_text(path, json.dumps(seal(calibration.to_dict())) + "\n")


def kept(path: Path) -> Calibration | None:
    """What was written there; None if nothing was, or it is damaged."""
    try:
        return Calibration.from_dict(unsealed(parsed(path.read_bytes())))
    except (OSError, ValueError):
        return None


def _folder() -> Path:
    chosen = os.environ.get("GAMMA_CACHE")
    return (Path(chosen) if chosen else cache_folder().parent) / "calibrations"
