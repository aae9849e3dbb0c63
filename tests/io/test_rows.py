"""Tables of facts: label and identifier of each part; names that a spreadsheet or a terminal would obey."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from gamma_kg import KnowledgeGraph
from gamma_kg.io.rows import write_rows
from gamma_kg.io.shown import html_text, shown, spreadsheet_text


def labelled(tmp_path: Path) -> KnowledgeGraph:
    (tmp_path / "g.ttl").write_text(
        '@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . e:K rdfs:label "Köln" . '
        'e:p rdfs:label "lies in" . e:K e:p e:D .'
    )
    return KnowledgeGraph.from_file(tmp_path / "g.ttl")


def read(path: Path) -> list[dict]:
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_tables_carry_label_and_identifier(tmp_path: Path, ending: str) -> None:
    kg = labelled(tmp_path)
    out = tmp_path / f"out{ending}"
    assert write_rows(out, [{"head": "e:D", "relation": "lies in", "tail": "Köln"}], kg) == 1
    assert read(out) == [
        {
            "head": "e:D",
            "relation": "lies in",
            "tail": "Köln",
            "head_id": "http://e.org/D",
            "relation_id": "http://e.org/p",
            "tail_id": "http://e.org/K",
        }
    ]


EVIL = [
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    "+1+1",
    "-2+3",
    "\tx",
    '<script>alert("x")</script>',
    "a\x1b[31mb",
    "ab\u202egnp",
]


@pytest.mark.parametrize("name", EVIL)
def test_a_spreadsheet_sees_no_formula_and_other_formats_the_exact_name(tmp_path: Path, name: str) -> None:
    kg = KnowledgeGraph.from_triples([(name, "r", "b")])
    facts = [{"head": name, "relation": "r", "tail": "b", "score": -1.5}]
    for ending in (".csv", ".jsonl", ".parquet"):
        write_rows(tmp_path / f"out{ending}", facts, kg)
    cells = read(tmp_path / "out.csv")[0]
    assert not cells["head"].startswith(("=", "+", "-", "@", "\t")) and cells["score"] == "-1.5"
    assert read(tmp_path / "out.jsonl")[0]["head"] == read(tmp_path / "out.parquet")[0]["head"] == name


def test_numbers_with_a_sign_are_no_formulas() -> None:
    assert [spreadsheet_text(text) for text in ("-5", "+1.5e3", "-", "a=b")] == ["-5", "+1.5e3", "'-", "a=b"]


def test_what_steers_a_terminal_is_shown() -> None:
    assert shown("a\x1b[2Jb\u202ec\x9bd") == "a\\x1b[2Jb\\u202ec\\x9bd"
    assert shown("Köln 日本 עברית") == "Köln 日本 עברית"
    assert html_text("<b>\x00&'\"") == "&lt;b&gt;\\x00&amp;&#x27;&quot;"


def test_a_run_with_no_facts_still_writes_a_table(family: KnowledgeGraph, tmp_path: Path) -> None:
    for ending in (".tsv", ".csv", ".jsonl", ".parquet", ".nt", ".ttl"):
        assert write_rows(tmp_path / f"out{ending}", [], family) == 0
        assert (tmp_path / f"out{ending}").exists()
