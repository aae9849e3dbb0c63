"""What a stopped run goes on from: weights, optimiser, counters, its place in the stream of draws, and which data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.optim import Optimizer

from gamma_kg.machine.processes import Processes
from gamma_kg.nn.model import GammaModel
from gamma_kg.training.counters import Counters
from gamma_kg.training.draws import Cursor
from gamma_kg.training.errors import TrainingError
from gamma_kg.training.run_folder import RunFolder


def pack_state(
    model: GammaModel,
    average: GammaModel,
    optimizer: Optimizer,
    count: Counters,
    cursors: Sequence[Sequence[Any]],
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Tensors and plain values only; `cursors` are those of all processes."""
    return {
        "model": model.state_dict(),
        "average": average.state_dict(),
        "optimizer": optimizer.state_dict(),
        "counters": dict(vars(count)),
        "cursors": cursors,
        "data": provenance.get("data", {}),
    }


def unpack_state(
    state: Mapping[str, Any], model: GammaModel, average: GammaModel, optimizer: Optimizer
) -> tuple[Counters, list[Cursor]]:
    """Puts weights and optimiser back where they were; returns the rest."""
    model.load_state_dict(state["model"])
    if average is not model:
        average.load_state_dict(state["average"])
    optimizer.load_state_dict(state["optimizer"])
    return Counters(**state["counters"]), [Cursor(*values) for values in state["cursors"]]


def cursor_of(cursors: Sequence[Cursor], processes: Processes) -> Cursor:
    """Where this process goes on.

    With another number of processes the order of the data changes: all go on behind the draws made so far.
    """
    behind = Cursor(max(cursor.draw for cursor in cursors) + 1, cursors[0].phase)
    return cursors[processes.number] if processes.count == len(cursors) else behind


def refuse_other_data(state: Mapping[str, Any], provenance: Mapping[str, Any], folder: RunFolder) -> None:
    """A run goes on with the facts that it began with."""
    begun, given = state.get("data", {}), provenance.get("data", {})
    changed = [name for name in begun if name not in given or begun[name]["sha256"] != given[name]["sha256"]]
    if changed:
        raise TrainingError(
            f"{folder.path} was begun with other facts: {', '.join(changed)} changed since. "
            "Put the files back, or start another run with another --out"
        )
