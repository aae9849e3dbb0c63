"""`gamma queries make` and `gamma evaluate --task queries` on a small folder."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gamma_kg import ConfigError, Gamma
from gamma_kg.cli import app
from gamma_kg.logic.lists import SHAPES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    rows = sorted({tuple(row) for row in np.stack([rng.integers(0, n, 160) for n in (20, 3, 20)], axis=1).tolist()})
    rng.shuffle(rows)
    for name, part in (("train", rows[:100]), ("valid", rows[100:115]), ("test", rows[115:])):
        lines = [f"entity {h}\trelation {r}\tentity {t}\n" for h, r, t in part]
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    return tmp_path


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_sets_are_made_alike_by_seed_and_evaluated(folder: Path, tmp_path: Path, small_gamma: Gamma) -> None:
    one, two, other = (tmp_path / f"{name}.jsonl" for name in ("one", "two", "other"))
    for path, seed in ((one, "0"), (two, "0"), (other, "1")):
        out = run("queries", "make", str(folder), "--per-type", "2", "--seed", seed, "--out", str(path))
        assert "classic: 28 queries" in out
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()

    checkpoint = tmp_path / "small.safetensors"
    small_gamma.save(checkpoint)
    words = ["evaluate", str(folder), "--task", "queries", "--queries", str(one), "--model", str(checkpoint)]
    words += ["--beside", "traversal", "--beside", "frequency", "--beside", f"{checkpoint}@0.3"]
    results = [json.loads(line) for line in run(*words, "--json").splitlines()]
    assert [result["model"]["name"] for result in results] == ["small", "traversal", "frequency", "small@0.3"]
    for result in results:
        assert set(SHAPES) | {"epfo", "negation"} == set(result["classic"])
    # No hard answer follows from the graph, so traversal puts none above the entities that are no answers.
    assert results[1]["classic"]["epfo"]["mrr"] < 0.1
    table = run(*words, "--out", str(tmp_path / "out"))
    assert "EPFO" in table and "all links must be predicted" in table
    assert len(json.loads((tmp_path / "out" / f"{folder.name}.queries.json").read_text())) == 4


def test_what_cannot_take_steps_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="can't take the steps"):
        run("evaluate", str(folder), "--task", "queries", "--model", "ppr")
    with pytest.raises(ConfigError, match="after @ a threshold"):
        run("evaluate", str(folder), "--task", "queries", "--model", "untrained@high")
    with pytest.raises(ConfigError, match="--per-type must be at least 1"):
        run("queries", "make", str(folder), "--per-type", "0")


def test_with_rules_no_step_goes_against_a_hierarchy(tmp_path: Path, small_gamma: Gamma) -> None:
    """A tree of two children each, its leaves held out: the subtree below n1 can't be above it."""
    facts = [f"n{i}\tkind of\tn{(i - 1) // 2}\n" for i in range(1, 511)]
    for name, part in (("train", facts[:480]), ("valid", facts[480:495]), ("test", facts[495:])):
        (tmp_path / f"{name}.txt").write_text("".join(part))
    small_gamma.save(tmp_path / "small.safetensors")
    query = {"query": ["n7", ["kind of", "kind of"]], "hard": ["n2"]}
    (tmp_path / "one.jsonl").write_text(json.dumps(query) + "\n")
    words = ["evaluate", str(tmp_path), "--task", "queries", "--queries", str(tmp_path / "one.jsonl"), "--json"]
    words += ["--model", str(tmp_path / "small.safetensors")]
    without, with_rules = (json.loads(run(*words, *more)) for more in ([], ["--rules"]))
    assert (without["rules"], with_rules["rules"]) == (False, True)
    assert with_rules["classic"]["2p"]["mrr"] > without["classic"]["2p"]["mrr"]
