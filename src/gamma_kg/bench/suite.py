"""All measurements in one record, with what was to be reached beside what was."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gamma_kg.bench.fb15k237 import benchmark_graph
from gamma_kg.bench.layer import BATCH, LayerTimes, copy_bandwidth, measure_plain
from gamma_kg.bench.start import measure_start
from gamma_kg.bench.timing import threads
from gamma_kg.bench.training import StepTiming, measure_step
from gamma_kg.bench.whole_queries import measure_growth, measure_memory, measure_queries
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.native import describe, retain_freed_memory
from gamma_kg.machine.cpu import cpu_name
from gamma_kg.machine.memory import free_memory

GROWTH = [10**5, 10**6, 10**7]


def run_bench(
    data_dir: Path | None, *, rounds: int, num_threads: int, growth: bool, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Measure everything; `tell` hears what is being done."""
    retain_freed_memory()  # as training does: fresh pages would be a part of every time
    tell("graph")
    name, kg = benchmark_graph(data_dir)
    edges, dim = backend_of(torch.device("cpu")).prepare(kg.edges), 64  # as queries see it
    record: dict[str, Any] = {
        "machine": machine(num_threads),
        "graph": {"name": name, "entities": kg.num_entities, "triples": kg.num_triples, "edges": edges.num_edges},
    }
    engine = LayerTimes(edges, dim, num_threads)
    single = LayerTimes(edges, dim, 1) if num_threads > 1 else engine

    def look_again(beside: str) -> None:
        """Rounds of the engine between all else: the fastest of a longer time is less of an accident."""
        tell("propagation and layer")
        engine.measure(rounds)
        if single is not engine:
            single.measure(max(1, rounds // 4))
        tell(beside)

    look_again("plain torch path")
    plain = measure_plain(edges, dim, max(1, rounds // 10), num_threads)
    record["queries"] = {}
    for branches, preset in (("one branch", "ultra"), ("two branches", "gamma")):
        look_again(f"whole queries, {branches}")
        record["queries"][branches] = measure_queries(kg, preset, 8, max(2, rounds // 10), num_threads)
    record["memory"] = measure_memory(kg, "gamma", 4)
    steps: list[StepTiming] = []
    for _ in range(math.ceil(rounds / 8)):
        look_again("training step")
        with threads(1):
            steps.append(measure_step(repeats=5))
    record["training step"] = training_step(steps)
    tell("start of a command")
    record["start"] = measure_start(max(2, rounds // 10))
    look_again("bounds")
    layer = engine.seconds
    record["seconds"] = {"threads": layer, "one thread": single.seconds, "plain torch": plain}
    record["ratios"] = ratios(layer, plain)
    record["scaling"] = {key: single.seconds[key] / layer[key] for key in ("unit", "complex forward", "complex layer")}
    record["busy"] = is_busy(record)
    record["bounds"] = bounds(layer, edges.num_nodes, edges.num_edges, dim, num_threads)
    if growth:
        tell("growth to 10^7 triples")
        record["growth"] = measure_growth(GROWTH, "gamma", num_threads)
    record["targets"] = targets(record)
    return record


def training_step(steps: list[StepTiming]) -> dict[str, float]:
    """The fastest of several measurements, in units of the fastest product."""
    best, unit = min(steps, key=lambda step: step.seconds), min(step.gemm for step in steps)
    return {"forward": best.forward, "backward": best.backward, "unit": unit, "ratio": best.seconds / unit}


def machine(num_threads: int) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "cpu": cpu_name(),
        "threads": num_threads,
        "busy_before": busy_share(),
        "memory_gb": round(free_memory() / 2**30, 1),
        "engine": describe(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
    }


def is_busy(record: dict[str, Any]) -> bool:
    """Whether other programs ran beside us: the numbers, above all those of several threads, then mean little."""
    share = record["machine"]["busy_before"]
    has_no_gain = record["machine"]["threads"] > 1 and record["scaling"]["unit"] < 1.3
    return has_no_gain or (share is not None and share > 0.1)


def busy_share(seconds: float = 0.5) -> float | None:
    """Share of all processors' time that other programs take while we sleep; None where the system does not tell.

    The load average would not do: it remembers our own start, and whatever ended a minute ago.
    """
    if (before := _processor_time()) is None:
        return None
    time.sleep(seconds)
    after = _processor_time()
    assert after is not None
    total, idle = after[0] - before[0], after[1] - before[1]
    return round(1 - idle / total, 2) if total else None


def _processor_time() -> tuple[int, int] | None:
    """Ticks since the system's start: all, and idle ones (waiting for a disk included)."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    ticks = [int(word) for word in stat.read_text().splitlines()[0].split()[1:]]
    return sum(ticks), ticks[3] + ticks[4]


def ratios(layer: dict[str, float], plain: dict[str, float]) -> dict[str, float]:
    """Times in units of the GEMM, and how much faster than plain torch the engine is."""
    unit = layer["unit"]
    found = {f"{key} / unit": value / unit for key, value in layer.items() if key.endswith(("forward", "layer"))}
    for key, value in layer.items():
        if key.endswith("backward"):
            found[f"{key} / forward"] = value / layer[key.replace("backward", "forward")]
    both = layer["complex forward"] + layer["complex backward"]
    found["plain / native forward"] = plain["forward"] / layer["complex forward"]
    found["plain / native forward and backward"] = plain["forward and backward"] / both
    return found


def bounds(layer: dict[str, float], nodes: int, edges: int, dim: int, num_threads: int) -> dict[str, float]:
    """How near the engine comes to what the machine can do."""
    peak = 2 * 1024**3 / layer["large GEMM"]
    # The least time of a layer: its rows gathered, its linear map at the peak rate.
    floor = layer["gather"] + 4 * nodes * dim * dim / peak
    return {
        "GEMM peak, GF/s": peak / 1e9,
        "unit's share of GEMM peak": 4 * nodes * dim * dim / layer["unit"] / peak,
        "gather, GB/s": 4 * edges * dim / layer["gather"] / 1e9,
        "copy, GB/s": copy_bandwidth(num_threads) / 1e9,
        "propagation's share of gather bound": layer["gather"] / layer["complex forward"],
        "layer's share of both bounds": floor / layer["complex layer"],
    }


def targets(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What was set out to be reached, as (name, value, limit, reached)."""
    ratio, start = record["ratios"], record["start"]
    of_one = {name: value for name, value in ratio.items() if not name.startswith(BATCH)}
    worst = {kind: max(v for k, v in of_one.items() if k.endswith(kind)) for kind in _KINDS}
    rows = [
        ("propagation forward, in GEMM units", worst["forward / unit"], 0.8, "at most"),
        ("propagation backward, in forwards", worst["backward / forward"], 2.6, "at most"),
        ("whole layer, in GEMM units", worst["layer / unit"], 1.6, "at most"),
        ("faster than plain torch, forward", ratio["plain / native forward"], 20, "at least"),
        ("faster than plain torch, both ways", ratio["plain / native forward and backward"], 20, "at least"),
        ("training step, in GEMM units, one thread", record["training step"]["ratio"], 75, "at most"),
        ("first answer, in imports of torch", start["first answer"] / start["import torch"], 1.8, "at most"),
    ]
    if record["memory"] is not None:
        rows.append(("peak memory, in state tensors", record["memory"]["state tensors"], 6, "at most"))
    if grown := record.get("growth"):
        factor = grown[-1]["ns per edge"] / grown[0]["ns per edge"]
        rows.append(("time per edge at 10^7 / at 10^5 triples", factor, 2, "at most"))
        if "peak bytes" in grown[-1]:
            rows.append(("GB for a query at 10^7 triples", grown[-1]["peak bytes"] / 1e9, 10, "at most"))
    return [
        {
            "name": name,
            "value": value,
            "limit": limit,
            "kind": kind,
            "reached": value <= limit if kind == "at most" else value >= limit,
        }
        for name, value, limit, kind in rows
    ]


_KINDS = ("forward / unit", "backward / forward", "layer / unit")
