"""Graph databases: Neo4j read in pages and written back by the official driver, SPARQL updates by pyoxigraph's store.

Neo4j is a stand-in that speaks Bolt (`tests/bolt.py`); the SPARQL endpoint is a real store behind Python's HTTP server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyoxigraph as ox
import pytest

from bolt import BoltServer
from gamma_kg import DataError, KnowledgeGraph
from gamma_kg.cli import main
from gamma_kg.data.accepted import read_accepted
from gamma_kg.data.write_back import AcceptedFact, write_back
from gamma_kg.io.rows import write_rows
from loopback import Endpoint, serving

pytest.importorskip("neo4j", reason="the Neo4j driver is an extra")


@pytest.fixture
def database() -> Iterator[BoltServer]:
    server = BoltServer()
    for i, name in enumerate(["Ann", "Bob", "Cleo"]):
        server.nodes[f"4:x:{i}"] = (["Person"], {"name": name, "title": None, "id": i})
    server.nodes["4:x:9"] = (["City", "Place"], {"title": "Köln"})
    server.relationships = {
        "5:x:000000": ("4:x:0", "KNOWS", "4:x:1"),
        "5:x:000001": ("4:x:1", "KNOWS", "4:x:2"),
        "5:x:000002": ("4:x:2", "LIVES IN", "4:x:9"),
    }
    with serving(server):
        yield server


def test_relationships_and_labels_of_neo4j_are_facts(database: BoltServer) -> None:
    kg = KnowledgeGraph.from_file(database.url, page_size=2)
    assert set(kg) == {
        ("Ann", "KNOWS", "Bob"),
        ("Bob", "KNOWS", "Cleo"),
        ("Cleo", "LIVES IN", "Köln"),
        ("Ann", "is a", "Person"),
        ("Bob", "is a", "Person"),
        ("Cleo", "is a", "Person"),
        ("Köln", "is a", "City"),
        ("Köln", "is a", "Place"),
    }
    assert [parameters["after"] for _, parameters in database.queries] == [None, "5:x:000001"]
    assert kg.entities.identifier(kg.entity_id("Ann")) == "neo4j:4:x:0"
    assert kg.report is not None and "secret" not in str(kg.report)


def test_a_limit_counts_relationships(database: BoltServer) -> None:
    kg = KnowledgeGraph.from_file(database.url, limit=1)
    assert {fact for fact in kg if fact[1] != "is a"} == {("Ann", "KNOWS", "Bob")}


def test_a_wrong_password_is_one_error_without_the_password(database: BoltServer) -> None:
    database.password = "other"
    url = database.url
    database.password = "secret"
    with pytest.raises(DataError, match=r"bolt://127\.0\.0\.1:\d+/neo4j: .*wrong password") as caught:
        KnowledgeGraph.from_file(url)
    assert "other" not in str(caught.value)


def test_no_database_is_one_error() -> None:
    with pytest.raises(DataError, match=r"bolt://127\.0\.0\.1:9/: "):
        KnowledgeGraph.from_file("bolt://127.0.0.1:9/", timeout=1)


def test_accepted_facts_are_written_back_to_neo4j_once(database: BoltServer, tmp_path: Path) -> None:
    kg = KnowledgeGraph.from_file(database.url)
    rows = [
        {"head": "Bob", "relation": "KNOWS", "tail": "Ann", "probability": 0.5, "accepted": "yes"},
        {"head": "Bob", "relation": "LIVES IN", "tail": "Köln", "probability": 0.4, "accepted": "no"},
    ]
    write_rows(tmp_path / "facts.csv", rows, kg)
    facts = read_accepted(tmp_path / "facts.csv")
    assert [fact.head for fact in facts] == ["neo4j:4:x:1"]
    assert write_back(database.url, facts) == write_back(database.url, facts) == 1
    assert list(database.relationships.values())[3:] == [("4:x:1", "KNOWS", "4:x:0")]


def test_nodes_that_are_gone_are_counted(database: BoltServer) -> None:
    facts = [AcceptedFact("neo4j:4:x:0", "neo4j:type:KNOWS", "neo4j:4:x:77", "line 2")]
    with pytest.raises(DataError, match="0 of 1 facts were written; the nodes of the others are gone"):
        write_back(database.url, facts)


def test_the_name_of_a_relation_cannot_leave_its_quotes(database: BoltServer) -> None:
    evil = "neo4j:type:X%60%5D-%3E%28t%29%20DELETE%20h%20//"
    write_back(database.url, [AcceptedFact("neo4j:4:x:0", evil, "neo4j:4:x:1", "line 2")])
    assert "`X``]->(t) DELETE h //`" in database.queries[-1][0]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint("<http://e.org/a> <http://e.org/p> <http://e.org/b> .")
    with serving(server):
        yield server


def fact(head: str, tail: str) -> AcceptedFact:
    return AcceptedFact(head, "http://e.org/p", tail, "facts.csv line 2")


def test_accepted_facts_are_inserted_into_an_endpoint(endpoint: Endpoint) -> None:
    facts = [fact("http://e.org/Köln", "urn:x:y"), fact("http://e.org/a", '"a \\"b\\""@en')]
    assert write_back(endpoint.url, facts) == 2
    assert len(endpoint.store) == 3
    assert (
        ox.Quad(ox.NamedNode("http://e.org/Köln"), ox.NamedNode("http://e.org/p"), ox.NamedNode("urn:x:y"))
        in endpoint.store
    )
    write_back(endpoint.url, facts[:1], graph="http://e.org/proposals")
    assert list(endpoint.store.named_graphs()) == [ox.NamedNode("http://e.org/proposals")]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (fact("_:b0", "urn:x:y"), "head and relation must be IRIs, got '_:b0'"),
        (fact('"x"', "urn:x:y"), "head and relation must be IRIs"),
        (fact("urn:x:y", "plain name"), "the tail must be an IRI or a literal"),
        (fact("urn:x:y", "urn:x:z> . <urn:a> <urn:b> <urn:c"), "the tail must be an IRI or a literal"),
    ],
)
def test_what_rdf_forbids_is_refused_before_anything_is_written(
    endpoint: Endpoint, bad: AcceptedFact, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        write_back(endpoint.url, [fact("urn:x:x", "urn:x:y"), bad])
    assert endpoint.requests == 0


@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", ".parquet"])
def test_accepted_facts_are_read_from_every_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"f{ending}"
    row = {
        "head": "Köln",
        "relation": "p",
        "tail": "x",
        "probability": 0.5,
        "head_id": "urn:k",
        "relation_id": "urn:p",
        "tail_id": "urn:x",
    }
    if ending == ".parquet":
        pl.DataFrame([row]).write_parquet(path)
    elif ending == ".jsonl":
        path.write_text(json.dumps(row) + "\n")
    else:
        pl.DataFrame([row]).write_csv(path, separator="\t" if ending == ".tsv" else ",")
    (found,) = read_accepted(path)
    assert (found.head, found.relation, found.tail, found.probability) == ("urn:k", "urn:p", "urn:x", 0.5)


def test_the_command_writes_only_when_told(endpoint: Endpoint, tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "f.jsonl").write_text('{"head_id":"urn:x:1","relation_id":"urn:x:p","tail_id":"urn:x:2"}\n')

    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["gamma", "write-back", str(tmp_path / "f.jsonl"), endpoint.url, *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        return capsys.readouterr().err

    assert "1 facts would be written; nothing was: add --write" in run() and len(endpoint.store) == 1
    assert "1 facts written" in run("--write") and len(endpoint.store) == 2
