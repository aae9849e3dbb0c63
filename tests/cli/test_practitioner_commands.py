"""The commands of someone with a graph of their own: any format in, predictions, completions and reasons out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.cli import main
from gamma_kg.cli.complete import parse_budget
from gamma_kg.demo import demo_graph
from gamma_kg.errors import ConfigError

TURTLE = """@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:ann e:motherOf e:bob, e:cleo ; rdfs:label "Ann" ; e:age 40 .
e:bob e:siblingOf e:cleo . e:cleo e:siblingOf e:bob .
e:dan e:fatherOf e:bob . e:motherOf rdfs:label "mother of" .
"""


@pytest.fixture
def model(tmp_path: Path, small_gamma: Gamma) -> Path:
    path = tmp_path / "model.safetensors"
    small_gamma.save(path)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "160")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["gamma", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return call


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "family.ttl"
    path.write_text(TURTLE)
    return path


def test_a_turtle_file_gives_named_predictions_with_one_command(run, graph: Path, model: Path) -> None:
    code, out, err = run("predict", graph, "--head", "Ann", "--relation", "mother of", "-m", model)
    assert code == 0 and "e:dan" in out
    assert "3 literals skipped" in err


def test_a_csv_with_odd_headers_gives_named_predictions_with_one_command(run, tmp_path: Path, model: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes('\ufeffnr;"Wer, genau";Was;Wen\r\n1;"Müller, Ann";kennt;Bob\r\n2;Bob;kennt;Cleo\r\n'.encode())
    for columns in (["--columns", '"Wer, genau",Was,Wen'], ["--columns", "1,2,3", "--header"]):
        code, out, _ = run("predict", path, *columns, "-h", "Müller, Ann", "-r", "kennt", "-m", model, "--json")
        assert code == 0 and {json.loads(line)["name"] for line in out.splitlines()} == {"Cleo", "Müller, Ann"}


def test_columns_are_chosen_by_name(run, tmp_path: Path, model: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("id,person,link,other\n1,Ann,knows,Bob\n")
    assert run("predict", path, "--columns", "person,link,other", "-h", "Bob", "-r", "knows", "-m", model)[0] == 0
    code, _, err = run("predict", path, "--columns", "persom,link,other", "-h", "Bob", "-r", "knows", "-m", model)
    assert code == 2 and "no column is named 'persom' (the head); did you mean 'person'" in err


def test_a_header_that_was_taken_for_a_fact_is_pointed_out(run, tmp_path: Path, model: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("Wer,Was,Wen\nAnn,kennt,Bob\nBob,kennt,Cleo\n")
    err = run("predict", path, "-h", "Ann", "-r", "kennt", "-m", model)[2]
    assert "line 1 was read as a triple" in err and "(--columns Wer,Was,Wen)" in err
    assert run("predict", path, "-h", "Ann", "-r", "kennt", "-m", model, "--header")[2] == ""
    path.write_text("Cleo,kennt,Wen\nAnn,kennt,Bob\nBob,kennt,Cleo\n")
    assert run("predict", path, "-h", "Ann", "-r", "kennt", "-m", model)[2] == ""


def test_standard_input_is_a_graph_too(run, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\tr\tb\nb\tr\tc\n")))
    code, out, _ = run("predict", "-", "-h", "a", "-r", "r", "-m", model, "--json")
    assert code == 0 and len(out.splitlines()) == 2


def test_bad_lines_are_skipped_and_counted(run, tmp_path: Path, model: Path) -> None:
    path = tmp_path / "f.tsv"
    path.write_text("a\tr\tb\nbad\nb\tr\tc\n")
    assert run("predict", path, "-h", "a", "-r", "r", "-m", model)[0] == 2
    code, _, err = run("predict", path, "-h", "a", "-r", "r", "-m", model, "--skip-bad-lines")
    assert code == 0 and "1 bad lines skipped" in err


def test_a_file_of_queries_becomes_a_file_of_answers(run, graph: Path, model: Path, tmp_path: Path) -> None:
    queries, out = tmp_path / "q.tsv", tmp_path / "answers.parquet"
    queries.write_text("head\trelation\ttail\nAnn\tmother of\t?\n?\te:fatherOf\te:cleo\n")
    code, stdout, err = run("predict", graph, "--queries", queries, "--out", out, "-k", 2, "-m", model)
    assert (code, stdout) == (0, "") and "4 answers to 2 queries" in err
    frame = pl.read_parquet(out)
    assert frame["asked"].to_list() == ["tail", "tail", "head", "head"]
    assert frame["head"].to_list()[0] == "Ann"


def test_without_a_file_the_answers_go_to_stdout_in_the_order_of_the_queries(
    run, graph: Path, model: Path, tmp_path: Path
) -> None:
    queries = tmp_path / "q.tsv"
    queries.write_text("?\te:fatherOf\te:cleo\nnonsense\nAnn\tmother of\t?\n")
    assert run("predict", graph, "--queries", queries, "-m", model)[0] == 2
    code, out, err = run("predict", graph, "--queries", queries, "-k", 1, "-m", model, "--skip-bad-lines")
    header, *rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and header[:4] == ["head", "relation", "tail", "asked"] and "q.tsv line 2" in err
    assert [dict(zip(header, row, strict=True))["asked"] for row in rows] == ["head", "tail"]
    options = ("-k", 1, "-m", model, "--skip-bad-lines", "--json", "--quiet")
    code, out, err = run("predict", graph, "--queries", queries, *options)
    assert code == 0 and err == "" and json.loads(out.splitlines()[1])["head_id"] == "http://e.org/ann"


def test_complete_gives_json_and_asserts_only_when_asked(run, graph: Path, model: Path, tmp_path: Path) -> None:
    code, out, err = run(
        "complete", graph, "--top", 3, "--no-calibrate", "--min-cases", 0, "-m", model, "--json", "--quiet"
    )
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(rows) == 3 and err == "" and rows[0]["relation_id"].startswith("http://e.org/")
    for assert_, asserted in (((), 0), (("--assert",), 3)):
        path = tmp_path / "new.ttl"
        assert (
            run(
                "complete", graph, "--top", 3, "--no-calibrate", "--min-cases", 0, "-m", model, "--out", path, *assert_
            )[0]
            == 0
        )
        predicates = [line for line in path.read_text().splitlines() if line.startswith("<http://e.org/")]
        assert len(predicates) == asserted
    assert run("complete", graph, "--no-calibrate", "--min-cases", 0, "-m", model, "--assert")[0] == 2


def test_describe_tells_what_is_in_a_graph(run, graph: Path, model: Path) -> None:
    code, out, _ = run("describe", graph, "-m", model, "--search", "ann")
    assert code == 0 and "a query takes about" in out and "mother of  2 facts" in out and "names found:\n  Ann" in out
    code, out, _ = run("describe", graph, "--json", "--no-time")
    assert code == 0 and json.loads(out)["relations"] == 3
    code, _, err = run("predict", graph, "-h", "Ann", "-r", "motherof x", "-m", model)
    assert code == 2 and "no relation is named 'motherof x' among 3; did you mean" in err and "gamma describe" in err


def test_h_is_help_where_it_is_not_the_head(run) -> None:
    assert "Usage" in run("-h")[1] and "Usage" in run("complete", "-h")[1]


def test_names_from_a_file_cannot_steer_the_terminal(run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "evil.tsv"
    path.write_text("a\x1b[2J\tr\tb\nb\tr\tc\nc\tr\td[bold]\u202e\n")
    code, out, err = run("predict", path, "-h", "b", "-r", "r", "-m", model)
    assert code == 0 and "\x1b" not in out + err and "\u202e" not in out and "a\\x1b[2J" in out and "d[bold]" in out
    code, out, err = run("predict", path, "-h", "x\x1b[2J", "-r", "r", "-m", model)
    assert code == 2 and "\x1b" not in out + err


def test_calibrated_probabilities_are_announced(
    run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAMMA_CACHE", str(tmp_path / "cache"))  # what another test has fitted is not announced
    path = tmp_path / "ring.tsv"
    path.write_text("".join(f"n{i}\tnext\tn{(i + 1) % 60}\n" for i in range(60)))
    code, _, err = run("predict", path, "-h", "n1", "-r", "next", "-m", model, "--calibrate")
    assert code == 0 and "expected calibration error" in err


def test_complete_writes_facts_or_shows_them(run, graph: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.jsonl"
    code, stdout, err = run("complete", graph, "--out", out, "-m", model, "--no-calibrate", "--min-cases", 0)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert (code, stdout) == (0, "") and rows and "promising queries asked" in err
    assert rows[0].keys() == {*"head relation tail probability score local head_id relation_id tail_id".split()}
    code, stdout, _ = run(
        "complete", graph, "-m", model, "--no-calibrate", "--min-cases", 0, "--relations", "e:siblingOf"
    )
    assert code == 0 and "Most probable missing facts" in stdout


def test_complete_keeps_to_its_budget_and_goes_on(run, graph: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.tsv"
    code, _, err = run(
        "complete", graph, "--out", out, "-m", model, "--no-calibrate", "--min-cases", 0, "--budget", "0.000001s"
    )
    assert code == 0 and "the same command goes on from here" in err
    assert (tmp_path / "new.tsv.progress").exists()
    code, _, err = run("complete", graph, "--out", out, "-m", model, "--no-calibrate", "--min-cases", 0)
    assert code == 0 and "goes on" not in err and not (tmp_path / "new.tsv.progress").exists()
    assert out.read_text().startswith("head\trelation\ttail\tprobability\tscore\tlocal\thead_id")


def test_complete_says_when_its_budget_ends_before_it_is_chosen_what_to_ask(
    run, graph: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamma_kg.rules.slots.SLOTS_PER_TICK", 1)
    options = ["--out", tmp_path / "new.tsv", "-m", model, "--no-calibrate", "--budget", "0.000001s"]
    code, _, err = run("complete", graph, *options)
    assert code == 0 and "it was not yet chosen what to ask" in err and "give it more time" in err
    assert "is left out" not in err  # nothing was asked, so nothing was judged


def test_complete_looks_names_up_before_it_computes_anything(
    run, graph: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamma_kg.predicting.models.resolve_model", lambda *_: pytest.fail("nothing may be computed"))
    for wrong in (
        ["--relations", "nothing"],
        ["--exclude-relation", "nothing"],
        ["--type", "nothing"],
        ["--min-probability", "nothing=0.5"],
        ["--min-probability", "much"],
        ["--min-probability", "1.5"],
        ["--max-per-relation", "0"],
        ["--review", "page.txt"],
    ):
        code, out, err = run("complete", graph, "-m", model, *wrong)
        assert (code, out) == (2, "") and "Traceback" not in err, wrong


def test_complete_writes_a_page_to_review(run, graph: Path, model: Path, tmp_path: Path) -> None:
    page = tmp_path / "review.html"
    code, out, err = run("complete", graph, "-m", model, "--no-calibrate", "--min-cases", 0, "--review", page)
    assert (code, out) == (0, "") and str(page) in err
    assert "Proposed facts" in page.read_text()


@pytest.mark.parametrize("ending", ["svg", "html", "json", "txt"])
def test_explain_writes_every_form(run, graph: Path, model: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"why.{ending}"
    code, stdout, _ = run("explain", graph, "-h", "Ann", "-r", "mother of", "-t", "e:bob", "--out", out, "-m", model)
    assert (code, stdout) == (0, "")
    text = out.read_text()
    assert "Ann" in text
    if ending == "svg":
        ElementTree.fromstring(text)


def test_explain_prints_text_or_json(run, graph: Path, model: Path) -> None:
    arguments = ("explain", graph, "-h", "Ann", "-r", "mother of", "-t", "e:bob", "-m", model)
    assert "Paths, by how far the score falls" in run(*arguments)[1]
    assert json.loads(run(*arguments, "--json")[1])["tail"] == "e:bob"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("predict", "{graph}", "--queries", "{graph}.no", "--json"), "no such file"),
        (("predict", "{graph}", "--queries", "{graph}", "--head", "Ann", "--json"), "not both"),
        (("predict", "{graph}", "--queries", "{graph}"), "line 1: expected head, relation and tail"),
        (("predict", "{graph}", "-h", "Ann", "-r", "mother of", "--assert"), "--assert is for files of RDF"),
        (("predict", "{graph}", "--head", "Ann", "--relation", "mother of", "--out", "a.xls"), "ending '.xls'"),
        (("predict", "{graph}", "--head", "Ann", "--relation", "mother of", "--literals", "keep"), "literals must be"),
        (("predict", "sparql:nowhere", "--head", "Ann", "--relation", "r"), "sparql:https://host/path"),
        (("complete", "{graph}", "--budget", "soon"), "--budget: wanted a time such as"),
        (("complete", "{graph}", "--top", "0"), "top must be at least 1"),
        (("complete", "{graph}", "--relations", "mother"), "no relation is named 'mother'"),
        (("explain", "{graph}", "-h", "Ann", "-r", "mother of", "-t", "e:bob", "--out", "a.png"), "written as '.png'"),
        (("explain", "{graph}", "-h", "Anne", "-r", "mother of", "-t", "e:bob"), "did you mean 'Ann'"),
    ],
)
def test_mistakes_give_one_line_and_exit_code_2(run, graph: Path, model: Path, arguments, words: str) -> None:
    filled = [argument.format(graph=graph) for argument in arguments]
    code, out, err = run(*filled, "--model", model)
    assert (code, out) == (2, "")
    last = err.splitlines()[-1]
    assert last.startswith("gamma: ") and words in last and "Traceback" not in err


def test_budgets_are_read_in_seconds_minutes_and_hours() -> None:
    assert [parse_budget(text) for text in ("90", "90s", "1.5m", "2h")] == [90, 90, 90, 7200]
    with pytest.raises(ConfigError):
        parse_budget("0m")


def test_the_demo_becomes_a_store_as_the_ray_option_says(run, model: Path, tmp_path: Path) -> None:
    code, _, err = run("complete", "demo", "--model", model, "--out", tmp_path / "facts.tsv", "--ray", "local")
    assert code == 2 and "gamma index demo --out G.gamma" in err
    code, _, err = run("index", "demo", "--out", tmp_path / "G.gamma")
    assert code == 0, err
    stored, demo = KnowledgeGraph.open(tmp_path / "G.gamma"), demo_graph()
    assert stored.num_triples == demo.num_triples and set(stored.entities) == set(demo.entities)
