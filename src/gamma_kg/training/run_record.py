"""What the header of trained weights says of their making: data, code, machine (`nn/provenance.py` reads it)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from gamma_kg.machine.cpu import cpu_name
from gamma_kg.training.training_graphs import NamedGraph


def run_record(graphs: Sequence[NamedGraph]) -> dict[str, Any]:
    """What a checkpoint's header says of its making: data, code, machine."""
    return {
        "data": {s.graph.name: {"triples": s.graph.num_triples, "sha256": s.sha256} for s in graphs},
        "commit": _commit(),
        "torch": torch.__version__,
        "hardware": f"{_processor()}, {torch.get_num_threads()} threads",
    }


def _commit() -> str:
    """The commit of the source tree, '' for an installed package."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _processor() -> str:
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else cpu_name()
