"""What a header keeps of the weights before it: short, flat, and with every graph behind them."""

from __future__ import annotations

import json
from itertools import pairwise

from gamma_kg.nn.provenance import graphs_behind, in_short, origin_of, runs_behind

FIRST = {"data": {"a": {"sha256": "1"}}, "step": 5, "minutes": 2.0, "commit": "c", "train_config": {"loss": "bce"}}
# As headers were written before they were kept short: each holds those before it, whole.
NESTED = {
    "data": {"b": {"sha256": "2"}},
    "step": 7,
    "minutes": 3.0,
    "init": {"joined": [FIRST, {"mean_of": [FIRST], "shares": [1.0]}]},
    "teachers": [{"data": {"c": {}}, "minutes": 100.0}, {"source": "imported from the ULTRA checkpoint ultra_3g.pth"}],
}


def test_graphs_of_the_run_of_its_start_and_of_its_teachers_are_behind_it() -> None:
    assert graphs_behind(NESTED)[:3] == ["b", "a", "c"]
    assert {"fb15k237", "wn18rr", "codex-m"} <= set(graphs_behind(NESTED))


def test_runs_are_those_it_went_on_from_each_once() -> None:
    assert [run["minutes"] for run in runs_behind(NESTED)] == [3.0, 2.0]


def test_what_is_kept_has_the_same_graphs_and_runs_and_is_not_nested() -> None:
    kept = in_short(NESTED)
    assert set(graphs_behind(kept)) == set(graphs_behind(NESTED))
    assert runs_behind(kept) == runs_behind(NESTED)
    assert all("before" not in run and "train_config" not in run for run in kept["before"])


def test_a_header_does_not_grow_with_every_generation_that_has_the_same_teachers() -> None:
    made: dict[str, object] = dict(FIRST)
    sizes = []
    for step in range(6):
        made = {**FIRST, "step": step, "init": in_short(made), "teachers": [in_short(made), in_short(made)]}
        sizes.append(len(json.dumps(made)))
    growth = [after - before for before, after in pairwise(sizes)]
    # A line more for each of the three records, whatever lies behind.
    assert max(growth) < 3 * len(json.dumps(FIRST)) * 2


def test_the_word_of_older_headers_is_read() -> None:
    assert origin_of({"source": "untrained"}) == origin_of({"origin": "untrained"}) == "untrained"
