"""The command line as a user meets it: tables or JSON on stdout, errors in one line on stderr with exit code 2."""

import json
import re
import warnings
from pathlib import Path

import pytest
import torch

from gamma_kg import Gamma
from gamma_kg.cli import main
from gamma_kg.errors import DataError


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.tsv"
    path.write_text("Ann\tmother of\tBob\nAnn\tmother of\tCleo\nBob\tsibling of\tCleo\n")
    return path


@pytest.fixture
def model(tmp_path: Path, small_gamma: Gamma) -> Path:
    path = tmp_path / "model.safetensors"
    small_gamma.save(path)
    return path


class Run:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of `gamma arguments…`."""
        self.monkeypatch.setattr("sys.argv", ["gamma", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = self.capsys.readouterr()
        return int(stop.value.code or 0), out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "160")
    return Run(capsys, monkeypatch)


def test_predict_prints_a_table_of_names(run: Run, facts: Path, model: Path) -> None:
    code, out, err = run("predict", facts, "--head", "Cleo", "--relation", "mother of", "--model", model)
    assert (code, err) == (0, "")
    assert "(Cleo, mother of, ?) on 3 facts about 3 entities" in out
    assert all(name in out for name in ("Ann", "Bob", "Cleo", "probability", "complex"))


def test_predict_prints_json_lines_and_nothing_else(run: Run, facts: Path, model: Path) -> None:
    code, out, err = run(
        "predict", facts, "--tail", "Cleo", "--relation", "mother of", "-m", model, "--json", "-k", 2, "--include-known"
    )
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err, len(rows)) == (0, "", 2)
    assert rows[0]["probability"] >= rows[1]["probability"]
    numbers, on = {"score", "probability", "known", "branch_weights", "why_not"}, {"local", "is_sampled"}
    assert rows[0].keys() == {"name", "head", "relation", "tail"} | numbers | on
    assert rows[0]["local"] is None
    assert all(row["tail"] == "Cleo" and row["head"] == row["name"] for row in rows)


@pytest.mark.parametrize("baseline", ["ppr", "frequency", "untrained:ultra"])
def test_baselines_predict_wherever_a_model_does(run: Run, facts: Path, baseline: str) -> None:
    code, out, _ = run("predict", facts, "--head", "Cleo", "--relation", "mother of", "-m", baseline, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and {row["name"] for row in rows} == {"Ann", "Bob", "Cleo"}
    assert sum(row["probability"] for row in rows) == pytest.approx(1)


def test_info_tells_versions_parameters_path_and_threads(run: Run, model: Path, small_gamma: Gamma) -> None:
    code, out, _ = run("info", model, "--json")
    facts = json.loads(out)
    assert code == 0 and facts["parameters"] == small_gamma.num_parameters
    assert facts["config"]["branches"] == ["complex", "split-complex"] and facts["threads"] >= 1
    assert "native" in facts["engine"] or "plain torch" in facts["engine"]


def test_info_fits_on_one_screen_and_says_what_the_bundled_model_is(run: Run) -> None:
    code, out, _ = run("info")
    lines = out.splitlines()
    assert code == 0 and len(lines) <= 10 and max(map(len, lines)) <= 120
    assert "683,906 parameters" in out and "fb15k237" in out and "validation MRR" in out


def test_convert_imports_public_weights(run: Run, shared: Path, tmp_path: Path) -> None:
    target = tmp_path / "ultra.safetensors"
    code, out, _ = run("convert", shared / "parity" / "ultra_3g.pth", target)
    assert code == 0 and "168,705 parameters" in out
    assert Gamma.from_pretrained(target).config.branches == ("real",)


def damaged(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (
            "two.tsv",
            b"a\tr\tb\nc\tr\n",
            "two.tsv line 2: expected 3 tab-separated columns (head, relation, tail), found 2",
        ),
        ("empty.tsv", b"", "empty"),
    ],
)
def test_a_bad_graph_names_file_and_line(
    run: Run, tmp_path: Path, model: Path, name: str, content: bytes, complaint: str
) -> None:
    code, out, err = run("predict", damaged(tmp_path, name, content), "--head", "a", "--relation", "r", "-m", model)
    assert (code, out) == (2, "") and complaint in err
    assert err.startswith("gamma: ") and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"graph": "nowhere.tsv"}, "nowhere.tsv"),
        ({"--head": "An"}, "no entity is named 'An' among 3; did you mean 'Ann'?"),
        ({"--relation": "mother"}, "did you mean 'mother of'?"),
        ({"--top-k": "0"}, "top_k must be at least 1, got 0"),
        ({"--top": "0"}, "top_k must be at least 1, got 0"),
        ({"--tail": "Bob"}, "exactly two of head, relation and tail"),
        ({"--memory": "lots"}, "800MB or 4GB"),
        ({"-m": "nowhere.safetensors"}, "no model 'nowhere.safetensors'"),
    ],
)
def test_a_bad_question_is_answered_in_one_line(
    run: Run, facts: Path, model: Path, changes: dict[str, str], complaint: str
) -> None:
    options = {"--head": "Ann", "--relation": "mother of", "-m": str(model)} | changes
    graph = options.pop("graph", str(facts))
    code, out, err = run("predict", graph, *(word for pair in options.items() for word in pair))
    assert (code, out) == (2, "") and complaint in err
    assert err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\xff" * 5000])
def test_a_damaged_checkpoint_is_refused_in_one_line(run: Run, facts: Path, tmp_path: Path, content: bytes) -> None:
    path = damaged(tmp_path, "bad.safetensors", content)
    code, out, err = run("predict", facts, "--head", "Ann", "--relation", "mother of", "-m", path)
    assert (code, out, err.count("\n")) == (2, "", 1) and "bad.safetensors" in err


def test_a_warning_is_one_line_without_the_line_of_python_that_gave_it(
    run: Run, facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(*_: object, **__: object) -> None:
        warnings.warn("the engine\nis \x1b[31m missing", RuntimeWarning, stacklevel=2)
        raise DataError("and that was all")

    monkeypatch.setattr("gamma_kg.cli.reading.Reading.graph", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = run("explain", facts, "-h", "Ann", "-r", "mother of", "-t", "Bob")
    assert code == 2 and "\x1b" not in err
    told, ended = err.splitlines()
    assert told.startswith("gamma: the engine is ") and told.endswith(" missing") and ended == "gamma: and that was all"


def test_explain_offers_no_baseline_and_takes_none(run: Run, facts: Path) -> None:
    _, shown, _ = run("explain", "--help")
    assert "--model" in shown and "ppr" not in shown and "frequency" not in shown
    code, _, err = run("explain", facts, "-h", "Ann", "-r", "mother of", "-t", "Bob", "-m", "ppr")
    assert (code, err.count("\n")) == (2, 1) and "a baseline has no paths to explain" in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_one_line_and_exit_code_2(run: Run, facts: Path, model: Path) -> None:
    asked = ("predict", facts, "-h", "Ann", "-r", "mother of", "-m", model)
    code, out, err = run(*asked, "--device", "cuda")
    assert (code, out) == (2, "") and "gamma: device 'cuda' was asked for, but torch finds 0 GPUs here" in err
    answers = [run(*asked, "--json", "--device", device)[:2] for device in ("cpu", "auto")]
    assert answers[0] == answers[1] and answers[0][0] == 0


@pytest.mark.parametrize("command", ["predict", "explain", "describe"])
def test_the_help_that_a_usage_error_advises_is_there(run: Run, command: str) -> None:
    """`-h` is --head for two of them, so the advice must be another word."""
    code, _, err = run(command)
    advised = re.search(r"Try '.*gamma (.+)' for help", err)
    assert code == 2 and advised is not None
    assert run(*advised[1].split())[0] == 0
