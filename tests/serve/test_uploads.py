"""What a caller may send as a graph, and how many of them the server holds."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard
from clients import MakeClient
from fastapi import UploadFile

from gamma_kg import DataError
from gamma_kg.serve.service import Service
from gamma_kg.serve.uploads import take_in

FACTS = b"a\tr\tb\nb\tr\tc\n"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("name", ["facts.tsv", "facts.nt"])
def test_packed_files_are_refused_whatever_they_are_called(
    make_client: MakeClient, pack: Callable[[bytes], bytes], name: str
) -> None:
    answer = make_client().post("/v1/graphs", files={"file": (name, pack(FACTS))})
    assert answer.status_code == 400 and "packed files are not taken" in answer.json()["detail"]


def test_rows_of_a_parquet_file_are_counted_before_it_is_read_whatever_it_is_called(make_client: MakeClient) -> None:
    content = io.BytesIO()
    pl.DataFrame({"h": ["a"] * 50, "r": ["r"] * 50, "t": ["b"] * 50}).write_parquet(content)
    client = make_client(facts=10)  # one fact, 50 times: read, it would be one
    for name in ("facts.parquet", "facts.tsv"):
        answer = client.post("/v1/graphs", files={"file": (name, content.getvalue())})
        assert answer.status_code == 400 and "found 50" in answer.json()["detail"], name


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cells.obo", b"[Term]\nid: C:1\nname: cell\n\n[Term]\nid: C:2\nname: neuron\nis_a: C:1 ! cell\n"),
        (
            "cells.owl",
            b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:owl='http://www.w3.org/2002/07/owl#'"
            b" xmlns:rdfs='http://www.w3.org/2000/01/rdf-schema#'>"
            b"<owl:Class rdf:about='urn:c:1'><rdfs:label>cell</rdfs:label></owl:Class>"
            b"<owl:Class rdf:about='urn:c:2'><rdfs:label>neuron</rdfs:label><rdfs:subClassOf rdf:resource='urn:c:1'/>"
            b"</owl:Class></rdf:RDF>",
        ),
    ],
)
def test_an_ontology_is_taken_and_shown_by_its_labels(make_client: MakeClient, name: str, content: bytes) -> None:
    client = make_client()
    graph = client.post("/v1/graphs", files={"file": (name, content)}).json()["id"]
    entity = client.get(f"/v1/graphs/{graph}/entity", params={"name": "neuron"}).json()
    assert entity["name"] == "neuron" and entity["identifier"].endswith(("C_2", "urn:c:2"))
    assert [fact["tail"] for fact in entity["facts"]] == ["cell"]


def test_a_refusal_names_the_file_as_its_owner_does_wherever_it_is_kept(make_client: MakeClient) -> None:
    content = b'<?xml version="1.0"?><Ontology xmlns="http://www.w3.org/2002/07/owl#"></Ontology>'
    answer = make_client().post("/v1/graphs", files={"file": ("my pizza.owl", content)})
    said = answer.json()["detail"]
    assert answer.status_code == 400 and "--input my pizza.owl --output my pizza.ttl" in said


def test_graphs_that_come_at_the_same_time_do_not_pass_the_limit(make_service: Callable[..., Service]) -> None:
    service = make_service(graphs=4)  # two are there already

    async def send() -> list[object]:
        files = [UploadFile(io.BytesIO(FACTS), filename=f"{i}.tsv") for i in range(6)]
        return await asyncio.gather(*(take_in(service, file) for file in files), return_exceptions=True)

    refused = [found for found in asyncio.run(send()) if isinstance(found, DataError)]
    assert len(service.graphs) == 4 and len(refused) == 4
    assert all("4 graphs are held already" in str(error) for error in refused)


def test_a_folder_for_uploads_is_made_when_one_comes_and_gone_with_the_server(
    make_service: Callable[..., Service], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    service = make_service()
    assert list(tmp_path.iterdir()) == []
    asyncio.run(take_in(service, UploadFile(io.BytesIO(FACTS), filename="a.tsv")))
    assert [list(folder.iterdir()) for folder in tmp_path.iterdir()] == [[]]
    service.close()
    assert list(tmp_path.iterdir()) == []
