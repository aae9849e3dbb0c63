import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gamma_kg.cli import app, main

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "datasets"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    facts = [f"e{i}\tr{i % 2}\te{(3 * i + 1) % 17}\n" for i in range(17)]
    (made / "train.txt").write_text("".join(facts[:14]))
    (made / "test.txt").write_text("".join(facts[14:]))
    return made


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_datasets_lists_all_with_group_size_and_licence(tmp_path):
    out = run("datasets", "--data-dir", tmp_path).stdout
    assert "nl-100" in out and "CC BY-NC-SA" in out and "57 sets, 0 of them here" in out
    records = [json.loads(line) for line in run("datasets", "--json", "--data-dir", tmp_path).stdout.splitlines()]
    assert len(records) == 57 and all(record["urls"] and record["licence"] for record in records)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmark files are not beside the project")
def test_datasets_tells_what_is_here():
    assert "57 sets, 41 of them here" in run("datasets", "--data-dir", SHARED).stdout


def test_evaluate_then_report(folder, tmp_path):
    out = tmp_path / "results"
    shown = run("evaluate", folder, "--model", "frequency", "--by", "halflink", "--out", out).stdout
    assert "made" in shown and "halflink" in shown and "SAMPLE" not in shown
    assert json.loads((out / "made.json").read_text())["dataset"] == "made"
    assert "Every graph" in run("report", out).stdout
    page = tmp_path / "page.html"
    assert str(page) in run("report", out, "--out", page).stdout and page.read_text().startswith("<!doctype html>")


def test_sample_is_announced_and_json_has_nothing_else(folder):
    assert "SAMPLE: at most 2 triples" in run("evaluate", folder, "--model", "ppr", "--limit", "2").stdout
    line = run("evaluate", folder, "--model", "ppr", "--limit", "2", "--json").stdout
    assert json.loads(line)["limit"] == {"triples": 2, "seed": 0}


def test_patterns_of_an_own_folder(folder):
    record = json.loads(run("patterns", folder, "--json", "--relations").stdout)
    # Fact 8 is a self-loop (e8, r0, e8), so r0 is not anti-symmetric.
    assert record["min_confidence"] == 0.97 and record["patterns"]["anti-symmetric"] == [1, 1]
    assert record["relations"]["anti-symmetric"] == ["r1"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["evaluate", "nl-101"], "did you mean"),
        (["evaluate", "nl-100", "--data-dir", "/nowhere"], "gamma datasets fetch nl-100"),
        (["evaluate", "--model", "ppr"], "nothing to evaluate"),
        (["evaluate", "--model", "ppr", "--group", "all", "--data-dir", "/nowhere"], "nothing to evaluate"),
        (["evaluate", "--group", "inductive", "--model", "ppr"], "groups: inductive-er"),
        (["report", "/nowhere"], "no folder"),
        (["patterns", "nl-101"], "did you mean"),
        (["datasets", "fetch"], "nothing to fetch"),
    ],
)
def test_mistakes_end_in_one_line_and_exit_code_2(arguments, text, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gamma", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    error = capsys.readouterr().err.strip().splitlines()
    assert stopped.value.code == 2 and text in error[-1] and "Traceback" not in "".join(error)
