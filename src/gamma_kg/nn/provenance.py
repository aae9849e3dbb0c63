"""How weights came to be, as the header of a checkpoint says it.

| key | what it holds |
|---|---|
| origin | in words, where no training run of ours made the weights |
| data, step, minutes, commit, … | the run that made them |
| init, teachers, joined, mean_of | the weights that they began from, imitated, or were put together of |

Of other weights a header keeps a short record (`in_short`): the run that made them, the runs before it in one flat
list, and the names of all graphs. Older headers hold each other whole and say `source` for origin; they are read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gamma_kg.data.leakage import ULTRA_TRAINED_ON

Provenance = Mapping[str, Any]

OF_A_RUN = ("step", "samples", "minutes", "weights", "commit", "hardware")
WENT_ON_FROM = ("init", "before", "joined", "mean_of")
LEARNT_FROM = (*WENT_ON_FROM, "teachers")


def origin_of(provenance: Provenance) -> str:
    """How the weights came to be, in words; empty where a run made them."""
    return str(provenance.get("origin", provenance.get("source", "")))


def graphs_behind(provenance: Provenance) -> list[str]:
    """Names of all graphs that led to the weights, each once: what the run, its start and its teachers were given."""
    names = _own_graphs(provenance)
    for other in _others(provenance, LEARNT_FROM):
        names += graphs_behind(other)
    return list(dict.fromkeys(names))


def runs_behind(provenance: Provenance) -> list[dict[str, Any]]:
    """The run that made the weights and those that it went on from, each once and without those before it."""
    found = [own] if (own := _own_run(provenance)) else []
    for other in _others(provenance, WENT_ON_FROM):
        found += [run for run in runs_behind(other) if run not in found]
    return found


def in_short(provenance: Provenance) -> dict[str, Any]:
    """What the header of later weights keeps of these."""
    own = _own_run(provenance)
    before = [run for run in runs_behind(provenance) if run != own]
    return {**own, "before": before} if before else own


def _own_run(provenance: Provenance) -> dict[str, Any]:
    """The last run alone; empty for what was put together without one."""
    record = {"origin": origin_of(provenance) or None, **{name: provenance.get(name) for name in OF_A_RUN}}
    record["seed"] = provenance.get("train_config", provenance).get("seed")
    graphs = _own_graphs(provenance)
    for teacher in _others(provenance, ("teachers",)):
        graphs += graphs_behind(teacher)
    record["graphs"] = list(dict.fromkeys(graphs)) or None
    return {name: value for name, value in record.items() if value is not None}


def _own_graphs(provenance: Provenance) -> list[str]:
    names = [*provenance.get("data", {}), *provenance.get("graphs", ())]
    for stem, graphs in ULTRA_TRAINED_ON.items():
        if f" {stem}.pth" in origin_of(provenance):
            names += graphs
    return names


def _others(provenance: Provenance, kinds: tuple[str, ...]) -> Iterator[Provenance]:
    for kind in kinds:
        found = provenance.get(kind, ())
        yield from (other for other in ([found] if isinstance(found, Mapping) else found) if isinstance(other, Mapping))
