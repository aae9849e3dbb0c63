"""Files of queries in, files of answers out: any format by its ending, resumable, errors with their place."""

from __future__ import annotations

import csv
import gzip
import json
from functools import partial
from pathlib import Path

import polars as pl
import pyoxigraph as ox
import pytest

from gamma_kg import DataError, Gamma, KnowledgeGraph
from gamma_kg.io.rdf_rows import RDF
from gamma_kg.io.rows import write_rows
from gamma_kg.predicting import query_files as queries
from gamma_kg.predicting.query_files import answer_queries, known_queries, read_queries

ASKED = [("Ann", "mother of", None), (None, "father of", "Finn"), ("Ann", None, "Dan")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.tsv", "Ann\tmother of\t?\n?\tfather of\tFinn\nAnn\t\tDan\n"),
        ("q.tsv", "relation\thead\ttail\nmother of\tAnn\t\nfather of\t?\tFinn\n\n?\tAnn\tDan\n"),
        ("q.csv", 'head,relation,tail\n"Ann",mother of,\n,father of,Finn\nAnn,?,Dan\n'),
        ("q.jsonl", '{"head":"Ann","relation":"mother of"}\n[null,"father of","Finn"]\n["Ann","?","Dan"]\n'),
    ],
)
def test_queries_are_read_from_any_format(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert [query for _, query in read_queries(tmp_path / name)] == ASKED


def test_queries_are_read_from_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame(ASKED, schema=["head", "relation", "tail"], orient="row")
    frame.write_parquet(tmp_path / "q.parquet")
    assert [query for _, query in read_queries(tmp_path / "q.parquet")] == ASKED


def test_two_columns_ask_for_tails(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text("head\trelation\nAnn\tmother of\n")
    assert [query for _, query in read_queries(tmp_path / "q.tsv")] == ASKED[:1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tb\tc\n", "line 1: exactly one of head, relation and tail"),
        ("a\tb\t?\n?\t?\tc\n", "line 2: exactly one of"),
        ("a\n", "line 1: expected head, relation and tail"),
        ("", "the file is empty"),
        ("head\trelation\ttail\n", "no queries found"),
    ],
)
def test_bad_queries_name_their_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "q.tsv").write_text(text)
    with pytest.raises(DataError, match=words):
        read_queries(tmp_path / "q.tsv")


BAD_LINES = {
    "q.tsv": "Ann\tmother of\t?\na\tb\tc\nonly one\nNobody\tmother of\t?\nAnn\t?\tDan\n",
    "q.csv": 'Ann,mother of,?\na,b,c\nAnn,"mother" of,?\nNobody,mother of,?\nAnn,?,Dan\n',
    "q.jsonl": '["Ann","mother of",null]\n{"head":\n17\n["Nobody","mother of",null]\n["Ann",null,"Dan"]\n',
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_bad_lines_are_reported_with_their_number_and_skipped(
    family: KnowledgeGraph, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(BAD_LINES[name])
    with pytest.raises(DataError, match="line 2"):
        read_queries(tmp_path / name)
    complaints: list[str] = []
    found = known_queries(family, read_queries(tmp_path / name, complaints), complaints)
    assert [query for _, query in found] == [("Ann", "mother of", None), ("Ann", None, "Dan")]
    assert [complaint.split(":")[0].split()[-1] for complaint in complaints] == ["2", "3", "4"]


def test_broken_quoting_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('Ann,mother of,?\n"Ann,mother of,?\n')
    with pytest.raises(DataError, match=r"q.csv line 2: the quoting is broken"):
        read_queries(tmp_path / "q.csv")


def test_a_file_of_unknown_names_is_an_error(family: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the 1 queries has names of this graph; first: q line 1: no entity"):
        known_queries(family, [("q line 1", ("Nobody", "mother of", None))], [])


def test_an_unknown_name_in_a_query_names_its_line(family: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="q line 7: no entity is named 'Anne' among 8; did you mean 'Ann'"):
        answer_queries(small_gamma, family, [("q line 7", ("Anne", "mother of", None))], tmp_path / "a.tsv")


def rows_of(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    if ".jsonl" in path.name:
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(text.splitlines(), delimiter="\t" if ".tsv" in path.name else ","))


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.parquet", "a.tsv.gz"])
def test_answers_are_those_of_predict(family: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, name: str) -> None:
    count = answer_queries(small_gamma, family, [("", query) for query in ASKED], tmp_path / name, top_k=2)
    rows = rows_of(tmp_path / name)
    assert count == len(rows) == 6
    expected = []
    for head, relation, tail in ASKED:
        answers = small_gamma.predict(family, head=head, relation=relation, tail=tail, top_k=2)
        expected += [(p.head, p.relation, p.tail, p.score) for p in answers]
    for row, (head, relation, tail, score) in zip(rows, expected, strict=True):
        assert (row["head"], row["relation"], row["tail"]) == (head, relation, tail)
        assert float(row["score"]) == pytest.approx(score, abs=1e-5)
    assert [row["asked"] for row in rows[::2]] == ["tail", "head", "relation"]
    assert not list(tmp_path.glob("*.progress")) and not list(tmp_path.glob(".*"))


def test_ntriples_carry_reified_confidence_and_the_iris_of_the_graph(small_gamma: Gamma, tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text(
        "<http://e.org/a> <http://e.org/p> <http://e.org/b c> .\n".replace("b c", "b")
        + "<http://e.org/b> <http://e.org/p> <http://e.org/c> .\n"
    )
    kg = KnowledgeGraph.from_file(tmp_path / "g.nt")
    answer_queries(small_gamma, kg, [("", ("e:a", "e:p", None))], tmp_path / "out.nt", top_k=1)
    quads = list(ox.parse(path=tmp_path / "out.nt"))
    terms = {str(quad.predicate): str(quad.object) for quad in quads}
    assert terms[f"<{RDF}subject>"] == "<http://e.org/a>" and terms[f"<{RDF}predicate>"] == "<http://e.org/p>"
    confidence = next(quad for quad in quads if quad.predicate.value == "urn:gamma:vocabulary:probability")
    assert 0 <= float(confidence.object.value) <= 1
    assert len(quads) == 4 + 5


def test_a_stopped_run_goes_on_and_asks_nothing_twice(
    family: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "BLOCK_QUERIES", 2)
    asked = [("", (name, "mother of", None)) for name in family.entities[:6]]
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    answer_queries(small_gamma, family, asked, whole)

    def stop(done: int, in_all: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer_queries(small_gamma, family, asked, out, progress=stop)
    assert not out.exists()
    steps: list[int] = []
    answer_queries(small_gamma, family, asked, out, progress=lambda done, in_all: steps.append(done))
    assert steps == [4, 6]
    assert rows_of(out) == rows_of(whole)


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.jsonll", "a.parquet.gz"])
def test_an_ending_without_a_writer_is_refused_first(family: KnowledgeGraph, tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"ending|leave out \.gz"):
        write_rows(tmp_path / name, [], family)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet"])
def test_a_table_without_rows_still_says_its_columns(family: KnowledgeGraph, tmp_path: Path, name: str) -> None:
    assert write_rows(tmp_path / name, [], family) == 0
    read = {"a.csv": pl.read_csv, "a.tsv": partial(pl.read_csv, separator="\t"), "a.parquet": pl.read_parquet}[name]
    assert read(tmp_path / name).columns == ["head", "relation", "tail", "head_id", "relation_id", "tail_id"]


@pytest.mark.parametrize(("local", "expected"), [("off", None), ("6", 6)])
def test_every_answer_says_what_it_was_computed_on(
    family: KnowledgeGraph, small_gamma: Gamma, tmp_path: Path, local: str, expected: int | None
) -> None:
    queries = [("one", ("Ann", "mother of", None)), ("two", ("Ann", None, "Dan"))]
    for name in ("a.jsonl", "a.parquet", "a.tsv"):
        answer_queries(small_gamma, family, queries, tmp_path / name, top_k=2, local=local)
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert len(rows) == 4
    assert {(row["local"], row["is_sampled"]) for row in rows} == {(expected, False)}
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame.schema["local"] == pl.Int64
    assert frame["local"].to_list() == [expected] * 4
    with (tmp_path / "a.tsv").open() as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    assert {row["local"] for row in table} == {"" if expected is None else str(expected)}
