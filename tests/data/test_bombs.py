"""Files made to do harm: they are refused in one line, before they fill the memory or reach for the network."""

from __future__ import annotations

import gzip
import socket
from pathlib import Path

import polars as pl
import pytest
import zstandard

from gamma_kg.data import frames, unpacking
from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError

ENTITIES = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(12))


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_packed_file_out_of_proportion_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_BYTES", 1 << 20)
    (tmp_path / "f.tsv").write_bytes(pack(b"a\tr\tb\n" * 3_000_000))
    with pytest.raises(DataError, match="unpacks to more than 300 times its size"):
        read_triples(tmp_path / "f.tsv")


def test_a_parquet_file_with_more_rows_than_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_ROWS_PER_BYTE", 1)
    pl.DataFrame({"h": ["a"] * 50_000, "r": ["r"] * 50_000, "t": ["b"] * 50_000}).write_parquet(tmp_path / "f.parquet")
    with pytest.raises(DataError, match="claims 50,000 rows in"):
        read_triples(tmp_path / "f.parquet")


RDF_XML = (
    '<!DOCTYPE rdf:RDF [%s]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    '<rdf:Description rdf:about="http://e.org/a"><e:p>%s</e:p></rdf:Description></rdf:RDF>'
)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (f'<!ENTITY e0 "x">{ENTITIES}', "stands for more than 1,000 characters"),
        (f'<!ENTITY e12 "{"x" * 2000}">', "stands for more than 1,000 characters"),
        ('<!ENTITY e12 "&e12;">', "stands for more than 1,000 characters"),
        ('<!ENTITY e12 SYSTEM "file:///etc/passwd">', "an XML entity that is not a plain text"),
    ],
)
def test_entities_of_xml_neither_explode_nor_read_files(tmp_path: Path, declared: str, words: str) -> None:
    (tmp_path / "f.rdf").write_text(RDF_XML % (declared, "&e12;"))
    with pytest.raises(DataError, match=words):
        read_triples(tmp_path / "f.rdf", literals="as-entities")


def test_entities_that_are_namespaces_are_read(tmp_path: Path) -> None:
    (tmp_path / "f.rdf").write_text(RDF_XML % ('<!ENTITY a "x"><!ENTITY e "http://e.org/&a;">', "&e;y"))
    assert '"http://e.org/xy"' in read_triples(tmp_path / "f.rdf", literals="as-entities").entities


@pytest.mark.parametrize(("name", "text"), [("f.jsonl", "[" * 100_000), ("f.jsonld", '{"a":' * 100_000)])
def test_deep_json_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=name):
        read_triples(tmp_path / name)


def test_a_number_of_ten_thousand_digits_is_a_bad_line(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text(f'["a","r",{"9" * 10_000}]\n')
    with pytest.raises(DataError, match=r"f\.jsonl line 1: not JSON"):
        read_triples(tmp_path / "f.jsonl")


def test_half_a_character_is_a_bad_line(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('["a","r","\\ud800"]\n')
    with pytest.raises(DataError, match=r"f\.jsonl line 1: the tail \(2\) holds half a character"):
        read_triples(tmp_path / "f.jsonl")


@pytest.mark.parametrize("context", ['"http://127.0.0.1:9/context.jsonld"', '{"@import": "http://127.0.0.1:9/c"}'])
def test_remote_contexts_are_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: str) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("no connection was to be made")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    (tmp_path / "f.jsonld").write_text(
        f'{{"@context": {context}, "@id": "http://e.org/a", "p": {{"@id": "http://e.org/b"}}}}'
    )
    with pytest.raises(DataError, match=r"f\.jsonld"):
        read_triples(tmp_path / "f.jsonld")
