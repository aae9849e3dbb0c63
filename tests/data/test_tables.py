"""Tables that are no triples: one row per thing, two columns, cells that mean nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gamma_kg import KnowledgeGraph
from gamma_kg.data.read import EncodedTriples, read_triples
from gamma_kg.errors import DataError

AIRPORTS = """ident,name,lat,country,type,hub
NBO,"Nairobi, Jomo",-1.3,KE,large,
MBA,Mombasa,-4.0,KE,medium,NBO
EBB,Entebbe,0.04,UG,large,NBO
KSE,Kasese,0.18,UG,medium,EBB
"""
AIRPORT_FACTS = [
    ("NBO", "country", "KE"),
    ("MBA", "country", "KE"),
    ("EBB", "country", "UG"),
    ("KSE", "country", "UG"),
    ("NBO", "type", "large"),
    ("MBA", "type", "medium"),
    ("EBB", "type", "large"),
    ("KSE", "type", "medium"),
    ("MBA", "hub", "NBO"),
    ("EBB", "hub", "NBO"),
    ("KSE", "hub", "EBB"),
]


def named(encoded: EncodedTriples) -> list[tuple[str, str, str]]:
    return [(encoded.entities[h], encoded.relations[r], encoded.entities[t]) for h, r, t in encoded.triples]


@pytest.fixture
def airports(tmp_path: Path) -> Path:
    (tmp_path / "airports.csv").write_text(AIRPORTS)
    return tmp_path / "airports.csv"


def test_each_column_of_a_wide_table_is_a_relation(airports: Path) -> None:
    encoded = read_triples(airports, id_column="ident")
    assert named(encoded) == AIRPORT_FACTS
    assert encoded.report.nulls_skipped == 1
    assert "columns that link nothing were left out (name, lat)" in encoded.report.notes[0]


def test_columns_and_literals_decide_what_a_wide_table_gives(airports: Path) -> None:
    assert set(read_triples(airports, id_column=0, columns=["lat"]).relations) == {"lat"}
    whole = read_triples(airports, id_column="ident", literals="as-entities")
    assert list(whole.relations) == ["name", "lat", "country", "type", "hub"]


def test_a_wide_table_may_be_parquet_or_tsv(airports: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(airports, infer_schema=False)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_csv(tmp_path / "a.tsv", separator="\t")
    for name in ("a.parquet", "a.tsv"):
        assert named(read_triples(tmp_path / name, id_column="ident")) == AIRPORT_FACTS


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_wide_table_may_be_a_data_frame(airports: Path, library: str) -> None:
    frame = pl.read_csv(airports, infer_schema=False)
    kg = KnowledgeGraph.from_dataframe(frame if library == "polars" else frame.to_pandas(), id_column="ident")
    assert sorted(kg) == sorted(AIRPORT_FACTS)


def test_a_wide_table_and_a_list_of_edges_are_told_how_they_are_read(airports: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"if each row is one thing, .*\(--id-column ident\)"):
        read_triples(airports)
    edges = tmp_path / "edges.txt"
    edges.write_text("Ada Bob\nBob Cleo\n")
    with pytest.raises(DataError, match=r"--edge-relation linked"):
        read_triples(edges)
    assert named(read_triples(edges, edge_relation="knows")) == [("Ada", "knows", "Bob"), ("Bob", "knows", "Cleo")]


def test_a_short_row_of_a_wide_table_is_a_bad_line(airports: Path) -> None:
    airports.write_text(AIRPORTS + "XXX,Nowhere\n")
    with pytest.raises(DataError, match=r"airports.csv line 6: expected 6 comma-separated columns, found 2"):
        read_triples(airports, id_column="ident")
    assert read_triples(airports, id_column="ident", skip_bad_lines=True).report.bad_lines == 1


def test_an_unknown_id_column_is_named(airports: Path) -> None:
    with pytest.raises(DataError, match=r"no column is named 'iden' .*did you mean 'ident'"):
        read_triples(airports, id_column="iden")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.tsv", "a\tb\nb\tc\n"),
        ("e.txt", "a b\nb c\n"),
        ("e.csv", "source,target\na,b\nb,c\n"),
        ("e.csv", '"a",b\nb,c\n'),
        ("e.jsonl", '["a","b"]\n["b","c"]\n'),
        ("e.jsonl", '{"from":"a","to":"b"}\n{"from":"b","to":"c"}\n'),
    ],
)
def test_two_columns_are_edges_of_one_relation(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert named(read_triples(tmp_path / name, edge_relation="linked to")) == [
        ("a", "linked to", "b"),
        ("b", "linked to", "c"),
    ]


def test_edges_come_from_named_columns_and_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"w": [1.5], "from": ["a"], "to": ["b"]})
    frame.write_csv(tmp_path / "e.csv")
    frame.write_parquet(tmp_path / "e.parquet")
    for name in ("e.csv", "e.parquet"):
        encoded = read_triples(tmp_path / name, edge_relation="links", columns=["from", "to"])
        assert named(encoded) == [("a", "links", "b")]


def test_two_columns_without_a_relation_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "e.tsv").write_text("a\tb\n")
    with pytest.raises(DataError, match=r"found 2; if each line is an edge, name their relation \(--edge-relation"):
        read_triples(tmp_path / "e.tsv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("n.tsv", b"a\tr\tb\na\tr\tNULL\nnan\tr\tb\na\tr\t\n"),
        ("n.csv", b'a,r,b\na,r,"NULL"\nnan,r,b\na,r,\n'),
        ("n.jsonl", b'["a","r","b"]\n["a","r","NULL"]\n["nan","r","b"]\n["a","r",null]\n'),
    ],
)
def test_null_values_leave_facts_out_and_are_counted(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    encoded = read_triples(tmp_path / name, null_values=["NULL", "nan"])
    assert named(encoded) == [("a", "r", "b")]
    assert encoded.report.nulls_skipped == 3 and "3 facts with a null value skipped" in str(encoded.report)


def test_null_values_leave_out_parquet_rows_too(tmp_path: Path) -> None:
    pl.DataFrame({"h": ["a", "a", None], "r": ["r"] * 3, "t": ["b", "NULL", "b"]}).write_parquet(tmp_path / "n.parquet")
    encoded = read_triples(tmp_path / "n.parquet", null_values=["NULL"])
    assert named(encoded) == [("a", "r", "b")] and encoded.report.nulls_skipped == 2


LABELS = """@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix s: <http://schema.org/> . @prefix d: <http://purl.org/dc/terms/> .
e:a e:p e:b . e:b e:p e:c . e:c e:p e:d . e:d e:p e:f .
e:a skos:prefLabel "Alpha"@en, "Alfa"@de ; skos:altLabel "First" .
e:b s:name "Beta" . e:c foaf:name "Gamma" . e:d d:title "Delta"@fr . e:f e:nick "Phi" ; rdfs:label "F" .
"""


def test_labels_come_from_all_usual_properties(tmp_path: Path) -> None:
    (tmp_path / "f.ttl").write_text(LABELS)
    encoded = read_triples(tmp_path / "f.ttl")
    assert list(encoded.entities) == ["Alpha", "Beta", "Gamma", "Delta", "F"]
    assert encoded.entities.id("First") == encoded.entities.id("Alfa") == encoded.entities.id("ALPHA") == 0


def test_label_property_and_language_are_a_choice(tmp_path: Path) -> None:
    (tmp_path / "f.ttl").write_text(LABELS)
    assert read_triples(tmp_path / "f.ttl", languages=["de"]).entities[0] == "Alfa"
    chosen = read_triples(tmp_path / "f.ttl", label_properties=["http://e.org/nick"])
    assert list(chosen.entities)[4] == "Phi" and chosen.entities.id("F") == 4
    assert read_triples(tmp_path / "f.ttl", label_properties=["skos:altLabel"]).entities[0] == "First"
    with pytest.raises(DataError, match="a property is an IRI or has a well-known prefix"):
        read_triples(tmp_path / "f.ttl", label_properties=["nick"])


def test_case_is_ignored_only_where_one_name_fits(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_text("Ann\tr\tann\nBob\tr\tCleo\n")
    names = read_triples(tmp_path / "f.tsv").entities
    assert names.id("BOB") == names.id("Bob") and names.id("ann") != names.id("Ann")
    with pytest.raises(DataError, match="the name 'ANN' means 2 entity names; use 'Ann' or 'ann'"):
        names.id("ANN")
