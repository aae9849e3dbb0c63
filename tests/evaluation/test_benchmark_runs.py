import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.errors import ConfigError, DataError, NonFiniteScoreError
from gamma_kg.evaluation import plan
from gamma_kg.evaluation.benchmark import evaluate_benchmark
from gamma_kg.evaluation.evaluate import rank_split
from gamma_kg.evaluation.options import EvaluationOptions
from gamma_kg.evaluation.plan import QueryPlan
from gamma_kg.evaluation.ranking import RivalCounts
from gamma_kg.evaluation.store import Partial, ResultStore, read_result
from gamma_kg.machine.processes import Processes
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.models import NamedModel, resolve_model
from gamma_kg.report.runs import load_runs

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"


class CountingPredictor:
    """Scores that depend on the query alone, and a list of what was asked."""

    def __init__(self, stop_after: int | None = None, poison: tuple[int, int] | None = None) -> None:
        self.asked: list[tuple[int, int]] = []
        self.stop_after, self.poison = stop_after, poison

    def triples(self, kg, local):
        return None

    def scores(self, kg, sources, relations, memory=None, local="off"):
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        pairs = list(zip(sources.tolist(), relations.tolist(), strict=True))
        self.asked += pairs
        rows = [torch.rand(kg.num_entities, generator=torch.Generator().manual_seed(s * 1000 + r)) for s, r in pairs]
        scores = torch.stack(rows)
        if self.poison in pairs:
            scores[pairs.index(self.poison), 3] = float("nan")
        return scores


def named(predictor: CountingPredictor, name: str = "counting") -> NamedModel:
    return NamedModel(name, name, predictor, "for tests")


def write_random_folder(folder: Path, num_entities: int, num_train: int, num_test: int) -> Path:
    """Random facts with three relations; no triple occurs twice."""
    rng = np.random.default_rng(0)
    size = 2 * (num_train + num_test)
    rows = np.unique(rng.integers(0, [num_entities, 3, num_entities], size=(size, 3)), axis=0)
    rng.shuffle(rows)
    rows = rows[: num_train + num_test + 6]
    folder.mkdir()
    parts = {"train": rows[:num_train], "valid": rows[num_train : num_train + 6], "test": rows[num_train + 6 :]}
    for part, triples in parts.items():
        (folder / f"{part}.txt").write_text("".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in triples))
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """31 test triples; batches of 4 distinct queries."""
    monkeypatch.setattr(plan, "BATCH_ROWS", 80)
    return write_random_folder(tmp_path / "made", num_entities=20, num_train=60, num_test=31)


def test_each_distinct_query_is_scored_once_and_every_triple_ranked_both_ways(folder):
    split = load_benchmark(str(folder)).split("test")
    predictor, plan = CountingPredictor(), QueryPlan.build(split)
    counts = rank_split(predictor, split, plan)
    assert len(plan) == 62 and len(predictor.asked) == len(set(predictor.asked)) == plan.num_distinct < 62
    assert counts.is_complete
    known = {tuple(t) for t in split.known.tolist()}
    for i in (0, 17, 40, 61):
        source, relation, answer = int(plan.source[i]), int(plan.relation[i]), int(plan.answer[i])
        row = CountingPredictor().scores(split, torch.tensor([source]), torch.tensor([relation]))[0]
        forward = relation < 3
        rivals = [
            e
            for e in range(split.num_entities)
            if ((source, relation, e) if forward else (e, relation - 3, source)) not in known
        ]
        assert counts.published_rank()[i] == 1 + sum(row[e] >= row[answer] for e in rivals)


def test_tail_task_ranks_tails_only(folder):
    split = load_benchmark(str(folder)).split("test")
    plan = QueryPlan.build(split, tails_only=True)
    assert len(plan) == 31 and not plan.is_head.any() and plan.relation.max() < 3


def test_limit_draws_the_same_triples_for_the_same_seed(folder):
    split = load_benchmark(str(folder)).split("test")
    one, two, other = (QueryPlan.build(split, limit=5, seed=s) for s in (1, 1, 2))
    assert len(np.unique(one.triple)) == 5 and len(one) == 10
    assert np.array_equal(one.triple, two.triple) and not np.array_equal(one.triple, other.triple)


def test_result_file_has_the_metrics_and_is_not_computed_again(folder, tmp_path):
    benchmark, out = load_benchmark(str(folder)), tmp_path / "out"
    first = CountingPredictor()
    result = evaluate_benchmark(benchmark, named(first), EvaluationOptions(), out=out)
    stored = read_result(out / "made.json")
    assert stored == json.loads(json.dumps(result))
    assert stored["dataset"] == "made" and 0 < stored["mrr"] <= stored["fair"]["mrr"] <= 1
    assert stored["mrr"] == pytest.approx((stored["tail"]["mrr"] + stored["head"]["mrr"]) / 2)
    assert -1 < stored["amri"] < 1 and stored["queries"] == 62 and stored["seconds"] > 0
    again = CountingPredictor()
    assert evaluate_benchmark(benchmark, named(again), EvaluationOptions(), out=out) == stored
    assert again.asked == []


def test_strata_are_added_to_a_finished_result_without_scoring_again(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions(), out=tmp_path)
    again = CountingPredictor()
    result = evaluate_benchmark(benchmark, named(again), EvaluationOptions(by=("halflink",)), out=tmp_path)
    strata = result["by"]["halflink"]
    assert again.asked == [] and sum(stratum["queries"] for stratum in strata.values()) == 62
    pooled = sum(stratum["mrr"] * stratum["queries"] for stratum in strata.values() if stratum["queries"])
    assert pooled / 62 == pytest.approx(result["mrr"])


def test_interrupted_graph_goes_on_where_it_stopped(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    whole = evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions())
    stopped, rest = CountingPredictor(stop_after=20), CountingPredictor()
    with pytest.raises(KeyboardInterrupt):
        evaluate_benchmark(benchmark, named(stopped), EvaluationOptions(), out=tmp_path)
    assert not (tmp_path / "made.json").exists()
    result = evaluate_benchmark(benchmark, named(rest), EvaluationOptions(), out=tmp_path)
    assert len(stopped.asked) == 20 and not set(stopped.asked) & set(rest.asked)
    assert len(stopped.asked) + len(rest.asked) == result["distinct_queries"]
    assert {key: result[key] for key in ("mrr", "mr", "fair")} == {key: whole[key] for key in ("mrr", "mr", "fair")}
    assert not list((tmp_path / "ranks").glob("*.part*"))


def test_relation_task_ranks_the_true_relation_among_all(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    predictor = CountingPredictor()
    result = evaluate_benchmark(benchmark, named(predictor), EvaluationOptions(task="relation"), out=tmp_path)
    split = benchmark.split("test")
    known = {tuple(t) for t in split.known.tolist()}
    reciprocal = []
    for head, relation, tail in split.queries.tolist():
        there = CountingPredictor().scores(split, torch.full((3,), head), torch.arange(3))[:, tail]
        back = CountingPredictor().scores(split, torch.full((3,), tail), torch.arange(3, 6))[:, head]
        score = (there + back) / 2
        rivals = [r for r in range(3) if (head, r, tail) not in known]
        reciprocal.append(1 / (1 + sum(bool(score[r] >= score[relation]) for r in rivals)))
    assert result["mrr"] == pytest.approx(np.mean(reciprocal))
    assert result["task"] == "relation" and result["queries"] == 31 and "tail" not in result
    evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions(), out=tmp_path)
    assert {path.name for path in tmp_path.glob("*.json")} == {"made.json", "made.relation.json"}
    assert load_runs([tmp_path])[0].results["made"]["task"] == "both"
    with pytest.raises(ConfigError, match="relation"):
        EvaluationOptions(task="relation", by=("halflink",))
    # Each pair is asked from both ends, for every relation.
    pairs = {(h, t) for h, _, t in split.queries.tolist()}
    heads = {h for h, _ in pairs}
    wanted = {(h, r) for h in heads for r in range(3)} | {(t, r) for _, t in pairs for r in range(3, 6)}
    assert set(predictor.asked) == wanted


def test_killed_run_loses_nothing_that_was_saved(folder, tmp_path, monkeypatch):
    """A kill gives no chance to save at the end: what was saved on the way must do."""
    monkeypatch.setattr("gamma_kg.evaluation.store.SAVING_SHARE", 1e9)
    benchmark = load_benchmark(str(folder))
    stopped, rest = CountingPredictor(stop_after=20), CountingPredictor()
    save = Partial.save

    def save_unless_stopped(self):
        if sys.exc_info()[0] is None:
            save(self)

    monkeypatch.setattr(Partial, "save", save_unless_stopped)
    with pytest.raises(KeyboardInterrupt):
        evaluate_benchmark(benchmark, named(stopped), EvaluationOptions(), out=tmp_path)
    evaluate_benchmark(benchmark, named(rest), EvaluationOptions(), out=tmp_path)
    assert not set(stopped.asked) & set(rest.asked)


def test_partial_work_of_another_model_is_not_used(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    with pytest.raises(KeyboardInterrupt):
        evaluate_benchmark(benchmark, named(CountingPredictor(stop_after=20)), EvaluationOptions(), out=tmp_path)
    other = CountingPredictor()
    result = evaluate_benchmark(benchmark, named(other, "other"), EvaluationOptions(), out=tmp_path)
    assert len(other.asked) == result["distinct_queries"]


def test_results_of_another_model_or_other_options_are_refused_until_fresh(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions(), out=tmp_path)
    with pytest.raises(DataError, match=r"another model.*--out"):
        evaluate_benchmark(benchmark, named(CountingPredictor(), "other"), EvaluationOptions(), out=tmp_path)
    with pytest.raises(DataError, match="other options"):
        evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions(limit=3), out=tmp_path)
    fresh = evaluate_benchmark(
        benchmark, named(CountingPredictor(), "other"), EvaluationOptions(), out=tmp_path, fresh=True
    )
    assert json.loads((tmp_path / "made.json").read_text())["model"]["name"] == fresh["model"]["name"] == "other"


def test_a_graph_that_another_run_is_ranking_into_the_folder_is_refused(folder, tmp_path):
    benchmark, model = load_benchmark(str(folder)), named(CountingPredictor())
    with (
        ResultStore(tmp_path).alone(benchmark.name, "test"),
        pytest.raises(DataError, match=r"the result .* another process .* is at work on it"),
    ):
        evaluate_benchmark(benchmark, model, EvaluationOptions(), out=tmp_path)
    result = evaluate_benchmark(benchmark, model, EvaluationOptions(), out=tmp_path)
    with ResultStore(tmp_path).alone(benchmark.name, "test"):  # what is finished can be read all the same
        assert evaluate_benchmark(benchmark, model, EvaluationOptions(), out=tmp_path) == result
    assert not list(tmp_path.glob(".*.lock"))


def test_valid_and_test_results_live_side_by_side(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    for split in ("test", "valid"):
        evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions(split=split), out=tmp_path)
    assert {path.name for path in tmp_path.glob("*.json")} == {"made.json", "made.valid.json"}


def test_non_finite_scores_stop_the_run_and_name_the_query(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    split = benchmark.split("test")
    plan = QueryPlan.build(split)
    at = int(np.flatnonzero(plan.is_head)[0])
    poison = (int(plan.source[at]), int(plan.relation[at]))
    name = rf"\(\?, {split.relations[poison[1] - 3]}, {split.entities[poison[0]]}\)"
    with pytest.raises(NonFiniteScoreError, match=name):
        evaluate_benchmark(benchmark, named(CountingPredictor(poison=poison)), EvaluationOptions(), out=tmp_path)
    assert not (tmp_path / "made.json").exists()


def test_unknown_options_are_refused():
    for bad in ({"split": "train"}, {"task": "papr"}, {"limit": 0}, {"by": ("patern",)}):
        with pytest.raises(ConfigError):
            EvaluationOptions(**bad)


def test_rank_counts_of_several_processes_add_up():
    parts = [RivalCounts.empty(4), RivalCounts.empty(4)]
    parts[0].above[:2] = parts[0].tied[:2] = parts[0].total[:2] = 1
    parts[1].above[2:] = parts[1].tied[2:] = parts[1].total[2:] = 2
    whole = RivalCounts.empty(4)
    whole.take_over(parts)
    assert whole.above.tolist() == [1, 1, 2, 2] and whole.is_complete


def test_baselines_beat_chance_on_a_graph_made_for_them(tmp_path):
    # Everybody points at the hub: frequency knows the tail, PageRank too.
    folder = tmp_path / "star"
    folder.mkdir()
    (folder / "train.txt").write_text("".join(f"e{i}\tr\thub\ne{i}\tnear\te{(i + 1) % 30}\n" for i in range(30)))
    (folder / "test.txt").write_text("new\tr\thub\n")
    split = load_benchmark(str(folder)).split("test")
    plan = QueryPlan.build(split, tails_only=True)
    assert rank_split(resolve_model("frequency").predictor, split, plan).published_rank().tolist() == [1]
    (folder / "test.txt").write_text("e3\tnear\thub\n")
    split = load_benchmark(str(folder)).split("test")
    ranks = rank_split(resolve_model("ppr").predictor, split, QueryPlan.build(split, tails_only=True)).published_rank()
    assert ranks.tolist() == [1]


def test_models_are_told_apart_by_their_hash():
    hashes = [resolve_model(name).hash for name in ("untrained", "untrained:ultra", "ppr", "frequency", "untrained")]
    assert len(set(hashes)) == 4 and hashes[0] == hashes[4]


def test_checkpoint_chosen_by_validation_says_so(tmp_path):
    gamma = Gamma.from_preset("ultra")
    gamma.provenance |= {"step": 1200, "weights": "last", "selection": {"rule": "highest mean (VGCS)", "among": 10}}
    gamma.save(tmp_path / "chosen.safetensors")
    model = resolve_model(tmp_path / "chosen.safetensors")
    assert model.name == "chosen" and model.hash == resolve_model("untrained:ultra").hash
    assert "last of step 1,200; chosen of 10 checkpoints by highest mean (VGCS)" in model.description


def test_damaged_store_entry_is_reported(tmp_path):
    (tmp_path / "made.json").write_text("{")
    with pytest.raises(DataError, match=r"made\.json"):
        ResultStore(tmp_path).finished("made", "test", "key")


class ThreadProcesses(Processes):
    """Two threads in the place of two processes."""

    def __init__(self, number: int, board: list, barrier: threading.Barrier) -> None:
        super().__init__(number, 2)
        object.__setattr__(self, "board", board)
        object.__setattr__(self, "barrier", barrier)

    def gather(self, value):
        self.board[self.number] = value
        self.barrier.wait(timeout=30)
        values = list(self.board)
        self.barrier.wait(timeout=30)
        return values

    def from_first(self, value):
        return self.gather(value)[0]


def test_two_processes_share_the_queries(folder, tmp_path):
    benchmark = load_benchmark(str(folder))
    board, barrier, predictors = [None, None], threading.Barrier(2), [CountingPredictor(), CountingPredictor()]

    def work(number):
        processes = ThreadProcesses(number, board, barrier)
        return evaluate_benchmark(
            benchmark, named(predictors[number]), EvaluationOptions(), out=tmp_path, processes=processes
        )

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, range(2)))
    whole = evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions())
    asked = [set(predictor.asked) for predictor in predictors]
    assert not asked[0] & asked[1] and len(asked[0] | asked[1]) == whole["distinct_queries"]
    assert min(map(len, asked)) >= whole["distinct_queries"] // 2 - 4
    assert results[0]["mrr"] == results[1]["mrr"] == whole["mrr"]


def test_torchrun_gives_the_result_of_one_process(tmp_path):
    """Three batches for two processes: none lost, none counted twice, the same to the last bit."""
    folder = write_random_folder(tmp_path / "made", num_entities=200, num_train=600, num_test=401)
    torch.set_num_threads(1)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gamma_kg", "evaluate", str(folder), "--model", "untrained:ultra"]
    command += ["--by", "halflink", "--out", str(tmp_path / "two")]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    children = []
    for number in range(2):
        own_number = dict.fromkeys(("RANK", "LOCAL_RANK"), number)
        joined = {**own_number, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        own = environment | {key: str(value) for key, value in joined.items()}
        children.append(subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True))
    benchmark, options = load_benchmark(str(folder)), EvaluationOptions(by=("halflink",))
    one = evaluate_benchmark(benchmark, resolve_model("untrained:ultra"), options, out=tmp_path / "one")
    outputs = [child.communicate(timeout=120)[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    assert "made" in outputs[0] and outputs[1] == ""
    two = read_result(tmp_path / "two" / "made.json")
    assert two["processes"] == 2 and two["distinct_queries"] > 2 * plan.LARGEST_BATCH
    costs = ("seconds", "queries_per_second", "peak_memory_mb", "processes")
    assert {k: v for k, v in one.items() if k not in costs} == {k: v for k, v in two.items() if k not in costs}
    with np.load(tmp_path / "one/ranks/made.npz") as a, np.load(tmp_path / "two/ranks/made.npz") as b:
        assert all(np.array_equal(a[key], b[key]) for key in ("above", "tied", "total"))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmark files and public weights are not beside the project")
@pytest.mark.parametrize(("name", "mrr", "within"), [("nell-v1", 0.7239, 0.01), ("metafam", 0.3298, 0.002)])
def test_public_weights_rank_as_the_official_code_does(name, mrr, within):
    benchmark, model = load_benchmark(name, SHARED / "datasets"), resolve_model(SHARED / "parity" / "ultra_3g.pth")
    result = evaluate_benchmark(benchmark, model, EvaluationOptions())
    assert result["mrr"] == pytest.approx(mrr, abs=within)


def test_an_unfinished_set_with_brackets_in_its_name_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "BATCH_ROWS", 80)
    folder = write_random_folder(tmp_path / "made [1]", num_entities=20, num_train=60, num_test=31)
    benchmark, out = load_benchmark(str(folder)), tmp_path / "out [1]"
    with pytest.raises(KeyboardInterrupt):
        evaluate_benchmark(benchmark, named(CountingPredictor(stop_after=10)), EvaluationOptions(), out=out)
    again = CountingPredictor()
    evaluate_benchmark(benchmark, named(again), EvaluationOptions(), out=out)
    asked = QueryPlan.build(benchmark.split("test")).num_distinct
    assert len(again.asked) < asked


# An array whose header numpy tries to read as Python of an older version, and fails.
TORN = b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((\n"


def test_ranks_that_were_damaged_are_made_again(folder, tmp_path):
    """Of a finished graph and of one that was stopped."""
    benchmark, out = load_benchmark(str(folder)), tmp_path / "out"
    result = evaluate_benchmark(benchmark, named(CountingPredictor()), EvaluationOptions(), out=out)
    ranks = out / "ranks" / "made.npz"
    whole = ranks.read_bytes()
    for damaged in (b"", b"no archive", whole[:-40], whole.replace(b"above", b"abode"), TORN):
        ranks.write_bytes(damaged)
        (out / "ranks" / "made.part0.npz").write_bytes(damaged)
        again = CountingPredictor()
        assert evaluate_benchmark(benchmark, named(again), EvaluationOptions(), out=out)["mrr"] == result["mrr"]
        assert again.asked and len(ranks.read_bytes()) == len(whole)


@pytest.mark.parametrize(
    "change",
    [{"mrr": "0.9"}, {"mr": 1e999}, {"leakage": 1}, {"fair": {}}, {"by": {"halflink": {"x": 1}}}, {"model": "ours"}],
)
def test_a_result_that_is_not_whole_is_refused(folder, tmp_path, change):
    evaluate_benchmark(load_benchmark(str(folder)), named(CountingPredictor()), EvaluationOptions(), out=tmp_path)
    path = tmp_path / "made.json"
    sound = json.loads(path.read_text())
    path.write_text(json.dumps({**sound, "mrr": 0.9}))
    with pytest.raises(DataError, match="changed since it was written"):
        read_result(path)
    sound.pop("checksum")
    path.write_text(json.dumps({**sound, **change}))
    with pytest.raises(DataError, match=rf"no whole result.*{next(iter(change))}"):
        read_result(path)
