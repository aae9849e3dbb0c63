"""VGCS, validation-guided checkpoint selection: the saved checkpoint with the best mean validation MRR."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from gamma_kg.io.atomic import write_text
from gamma_kg.nn.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.run_folder import RunFolder, step_of

Validate = Callable[[GammaModel], Mapping[str, float]]


@dataclass(frozen=True)
class Candidate:
    """A checkpoint and its validation MRR per benchmark."""

    path: Path
    mrr: Mapping[str, float]

    @property
    def mean(self) -> float:
        return sum(self.mrr.values()) / max(len(self.mrr), 1)


def validate_checkpoints(
    folder: RunFolder,
    validate: Validate,
    *,
    last: int = 0,
    device: torch.device | str = "cpu",
    on_candidate: Callable[[Candidate], None] | None = None,
) -> list[Candidate]:
    """Every saved checkpoint (raw and averaged; of the `last` steps only, where given), oldest first."""
    paths = folder.checkpoints()
    steps = sorted({step_of(path) for path in paths})[-last:]
    paths = [path for path in paths if step_of(path) in steps]
    if not paths:
        raise TrainingError(f"{folder.path} has no checkpoints to choose from")
    found: list[Candidate] = []
    for path in paths:
        found.append(Candidate(path, dict(validate(load_checkpoint(path).build().to(device)))))
        if on_candidate is not None:
            on_candidate(found[-1])
    return found


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The highest mean; the earliest of equals."""
    return max(candidates, key=lambda candidate: candidate.mean)


def write_selected(candidates: Sequence[Candidate], out: Path, limit: int | None) -> Checkpoint:
    """Save the best as `out`, with the whole table in its header and beside it as Markdown."""
    best = best_of(candidates)
    chosen = load_checkpoint(best.path)
    selection = {
        "rule": "highest mean validation MRR (VGCS)",
        "checkpoint": best.path.name,
        "validation_mrr": dict(best.mrr),
        "mean": best.mean,
        "limit": limit,
        "among": len(candidates),
    }
    save_checkpoint(out, chosen.build(), {**chosen.provenance, "selection": selection})
    table = markdown_table(candidates)
    write_text(out.with_suffix(".md"), table)
    rows = [{"checkpoint": c.path.name, "mean": c.mean, "mrr": dict(c.mrr)} for c in candidates]
    write_text(out.with_suffix(".json"), json.dumps(rows, indent=1))
    return chosen


def markdown_table(candidates: Sequence[Candidate]) -> str:
    """Checkpoints × benchmarks, the chosen row marked."""
    names = list(candidates[0].mrr)
    lines = [f"| checkpoint | {' | '.join(names)} | mean |", f"|---|{'---|' * (len(names) + 1)}"]
    best = best_of(candidates)
    for candidate in candidates:
        cells = [f"{candidate.mrr[name]:.4f}" for name in names] + [f"{candidate.mean:.4f}"]
        label = candidate.path.name.removesuffix(".safetensors")
        lines.append(f"| {f'**{label}**' if candidate is best else label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
