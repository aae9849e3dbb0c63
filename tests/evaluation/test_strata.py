"""Results by pattern: which groups are large enough to say something."""

from __future__ import annotations

from pathlib import Path

import pytest

from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.evaluation.strata import by_pattern


@pytest.mark.parametrize(("pairs", "is_shown"), [(25, True), (24, False)])
def test_a_pattern_is_shown_where_fifty_test_triples_have_it(tmp_path: Path, pairs: int, is_shown: bool) -> None:
    both_ways = [f"a{i}\tmarried to\tb{i}\nb{i}\tmarried to\ta{i}\n" for i in range(pairs)]
    (tmp_path / "test.txt").write_text("".join(both_ways))
    for name in ("train", "valid"):
        (tmp_path / f"{name}.txt").write_text("".join(f"a{i}\tknows\tb{i}\n" for i in range(30)))
    benchmark = load_benchmark(str(tmp_path))
    split = benchmark.split("test")
    found = by_pattern(benchmark, split, QueryPlan.build(split))
    assert ("symmetric" in found) == is_shown
    if is_shown:
        assert found["symmetric"].sum() == 4 * pairs  # each triple is ranked both ways
