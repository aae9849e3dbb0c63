"""`gamma bench` measures what it says; numbers themselves are the machine's business and are not tested."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from gamma_kg.bench import local_queries, start, suite, timing
from gamma_kg.bench.fb15k237 import Counts, benchmark_graph, generated_triples
from gamma_kg.bench.layer import ALGEBRAS, BATCH, LAYERS, in_a_row, layers_task, merged_types, passes_in
from gamma_kg.bench.timing import BestTimes, best_times
from gamma_kg.bench.whole_queries import distinct_queries, measure_growth
from gamma_kg.cli import app
from gamma_kg.data.benchmark import Benchmark, own_benchmark
from gamma_kg.errors import DataError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import native
from gamma_kg.kernels.reference import layer_reference, propagate_reference
from gamma_kg.nn.layer import RelationalLayer

TINY = Counts(60, 4, 300)


def test_generated_graphs_have_the_counts_asked_for_and_skewed_degrees() -> None:
    triples = generated_triples(Counts(2_000, 40, 12_000))
    assert len(triples) == len(np.unique(triples, axis=0)) == 12_000
    assert triples.max(0).tolist() <= [1_999, 39, 1_999]
    degree = np.bincount(triples[:, [0, 2]].ravel(), minlength=2_000)
    assert degree.max() > 10 * np.median(degree) > 0


def test_a_seed_gives_one_graph() -> None:
    assert np.array_equal(generated_triples(TINY, seed=3), generated_triples(TINY, seed=3))
    assert not np.array_equal(generated_triples(TINY, seed=3), generated_triples(TINY, seed=4))


def test_a_named_folder_without_the_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fb15k237"):
        benchmark_graph(tmp_path)


def test_every_task_takes_its_turn_and_the_best_round_counts() -> None:
    calls: list[str] = []
    times = best_times({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert calls == ["a", "b"] * 4
    assert set(times) == {"a", "b"} and all(0 <= t < 60 for t in times.values())


def test_rounds_at_different_times_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    # Seconds of the runs: a warm-up and two rounds, then again.
    lasted = iter([1.0, 5.0, 4.0, 0.5, 6.0, 3.0])
    now = 0.0

    def work() -> None:
        nonlocal now
        now += next(lasted)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now)
    times = BestTimes({"work": work})
    times.measure(2)
    assert times.seconds == {"work": 4.0}
    times.measure(2)
    assert times.seconds == {"work": 3.0}


def test_times_are_those_of_one_query_and_one_layer() -> None:
    tasks = ("unit", "unit again", "large GEMM", "real forward", "gather", "dual layer", f"{BATCH} complex layer")
    assert [passes_in(name, 2) for name in tasks] == [1, 1, 1, LAYERS, LAYERS, LAYERS, 2 * LAYERS]


def test_a_task_in_a_row_runs_as_often_as_it_is_divided_by() -> None:
    calls: list[int] = []
    in_a_row(lambda: calls.append(1))()
    assert len(calls) == passes_in("real forward", 1)


@pytest.mark.skipif(native.module() is None, reason="the native module is not built")
@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_layers_that_are_measured_are_those_of_the_definition(family: KnowledgeGraph, algebra: str) -> None:
    edges, layers = family.edges, [RelationalLayer(8, algebra) for _ in range(3)]
    x, relation = torch.randn(2, edges.num_nodes, 8), torch.randn(1, edges.num_types, 8)
    starts, boundary = Starts.single(torch.tensor([0, 1])), torch.randn(2, 8)
    targets = [torch.empty_like(x) for _ in range(2)]
    with torch.no_grad():
        layers_task(edges, x, relation, starts, boundary, layers, targets)()
        for layer in layers:
            x = layer_reference(edges, x, relation, starts, boundary, layer.weights())
    torch.testing.assert_close(targets[0], x, atol=1e-4, rtol=1e-4)


def test_merged_types_sum_all_neighbours(family: KnowledgeGraph) -> None:
    edges = family.edges
    x, ones = torch.randn(1, edges.num_nodes, 4), torch.ones(1, edges.num_types, 4)
    found = propagate_reference(merged_types(edges), x, ones[:, :1], "real")
    torch.testing.assert_close(found, propagate_reference(edges, x, ones, "real"))


def test_queries_are_distinct(family: KnowledgeGraph) -> None:
    source, relation = distinct_queries(family, 5)
    assert len(torch.stack((source, relation)).unique(dim=1).T) == len(source) == 5


def test_growth_reports_time_per_edge() -> None:
    rows = measure_growth([500, 1000], "ultra", 1)
    assert [row["triples"] for row in rows] == [500, 1000]
    assert all(row["ns per edge"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("share", "gain", "busy"), [(0.02, 1.9, False), (0.5, 1.9, True), (0.02, 0.2, True), (None, 1.9, False)]
)
def test_a_busy_machine_is_told_by_its_processors_or_by_threads_that_gain_nothing(
    share: float | None, gain: float, busy: bool
) -> None:
    record = {"machine": {"threads": 2, "busy_before": share}, "scaling": {"unit": gain}}
    assert suite.is_busy(record) is busy


def test_what_other_programs_take_is_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([(1000, 400), (1100, 475)])
    monkeypatch.setattr(suite, "_processor_time", lambda: next(readings))
    assert suite.busy_share(0.0) == 0.25
    monkeypatch.undo()
    share = suite.busy_share(0.05)
    assert share is None or 0 <= share <= 1


def test_the_command_writes_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tiny_graph(_: Path | None) -> tuple[str, KnowledgeGraph]:
        names = [str(i) for i in range(TINY.entities)]
        return "tiny", KnowledgeGraph(generated_triples(TINY), names, names[: TINY.relations])

    monkeypatch.setattr(suite, "benchmark_graph", tiny_graph)
    monkeypatch.setattr(suite, "measure_step", lambda repeats: suite.StepTiming(0.2, 0.3, 0.01))
    monkeypatch.setattr(suite, "GROWTH", [500, 1000])
    monkeypatch.setattr(start, "_run", cache(start._run))  # each command once: the rounds are tested above
    out = tmp_path / "bench.json"
    result = CliRunner().invoke(app, ["bench", "--rounds", "1", "--growth", "--threads", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    assert record["graph"]["triples"] == 300 and record["machine"]["threads"] == 1
    assert record["training step"]["ratio"] == pytest.approx(50)
    aims = {aim["name"]: aim for aim in record["targets"]}
    assert aims["training step, in GEMM units, one thread"]["reached"]
    assert "to reach" in result.output


def test_local_answers_are_measured_against_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "fb15k237"
    folder.mkdir()
    lines = ["\t".join(map(str, triple)) for triple in generated_triples(TINY).tolist()]
    for part, chosen in (("train", lines[20:]), ("valid", lines[:10]), ("test", lines[10:20])):
        (folder / f"{part}.txt").write_text("\n".join(chosen) + "\n")
    monkeypatch.setattr(local_queries, "GROWTH", (300, 600, 2_400))
    monkeypatch.setattr(local_queries, "LEAST_WHOLE", 500)
    monkeypatch.setattr(local_queries, "MOST_WHOLE", 1_000)
    KnowledgeGraph(generated_triples(Counts(120, 4, 620)), [str(i) for i in range(120)], list("abcd")).save(
        tmp_path / "g.gamma"
    )
    monkeypatch.setattr(local_queries, "load_benchmark", lambda name, _: _found(tmp_path, name))
    out = tmp_path / "bench.json"
    command = ["bench", "--local", "--growth", "--rounds", "1", "--threads", "1", "--out", str(out)]
    result = CliRunner().invoke(app, [*command, "--store", str(tmp_path / "g.gamma")])
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    assert [row["graph"] for row in record["ratios"]] == ["fb15k237", "620 triples"]
    for row in record["ratios"]:
        assert row["ratio"] == pytest.approx(row["local"] / row["whole"]) and row["triples"] >= 8_000
    assert [row["triples"] for row in record["growth"]] == [300, 620, 2_400], "a store stands for its size"
    assert all(row["opening"] >= 0 and row["processor seconds"] > 0 for row in record["growth"])
    assert [aim["limit"] for aim in record["targets"]] == [5, 200]
    assert "codex-m" in result.output  # is not there, which is said


def _found(folder: Path, name: str) -> Benchmark:
    if not (folder / name).is_dir():
        raise DataError(f"{name} is not here")
    return own_benchmark(folder / name)
