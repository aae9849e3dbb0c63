"""Graphs on disk: the same as in memory, whole or not at all, and never silently damaged."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg import DataError, KnowledgeGraph, UnknownNameError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.relation_pairs import KINDS
from gamma_kg.graph.store import facts as stored_facts
from gamma_kg.graph.store import identify, sort
from gamma_kg.graph.store import index as indexing
from gamma_kg.graph.store import write as writing_stores
from gamma_kg.graph.store.facts import verify_store
from gamma_kg.graph.store.index import index_files
from gamma_kg.graph.store.layout import HEADER, ArrayFolder, Header
from gamma_kg.graph.store.names import StoredNames, write_names
from gamma_kg.graph.store.spool import disk_errors
from gamma_kg.io.lock import locked

EDGE_ARRAYS = ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse")
FACTS = "Ann\tmother of\tBob\nBob\tlives in\tZürich\nAnn\tmother of\tBob\nCleo\tmother of\tAnn\n"
MORE = "Dan\tmarried to\tAnn\nBob\tlives in\tZürich\n"


def assert_same(stored: KnowledgeGraph, kg: KnowledgeGraph) -> None:
    assert list(stored.entities) == list(kg.entities) and list(stored.relations) == list(kg.relations)
    assert stored.num_triples == kg.num_triples
    assert sorted(stored.triples.tolist()) == sorted(kg.triples.tolist())
    kinds = [(stored.relation_graph_as(kind), kg.relation_graph_as(kind)) for kind in KINDS]
    for graph, other in ((stored.edges, kg.edges), *kinds):
        for name in EDGE_ARRAYS:
            assert getattr(graph, name).equal(getattr(other, name)), name
        assert (graph.num_nodes, graph.num_types) == (other.num_nodes, other.num_types)


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    (tmp_path / "facts.tsv").write_text(FACTS)
    (tmp_path / "more.tsv").write_text(MORE)
    return tmp_path / "facts.tsv"


@pytest.fixture
def store(facts: Path) -> Path:
    index_files([facts], facts.with_name("g.gamma"))
    return facts.with_name("g.gamma")


def test_a_saved_graph_is_the_same_when_opened(tmp_path: Path, family: KnowledgeGraph) -> None:
    family.save(tmp_path / "family.gamma")
    for stored in (KnowledgeGraph.open(tmp_path / "family.gamma"), KnowledgeGraph.from_file(tmp_path / "family.gamma")):
        assert_same(stored, family)
        ann, mother = stored.entity_id("Ann"), stored.relation_id("mother of")
        assert stored.answers(ann, mother).equal(family.answers(ann, mother))
        assert stored.path == tmp_path / "family.gamma"
        blocks = list(stored.triple_blocks(3))
        assert len(blocks) > 1 and sum(map(len, blocks)) == family.num_triples


def test_indexed_files_are_the_same_as_files_read(facts: Path, store: Path) -> None:
    assert_same(KnowledgeGraph.open(store), KnowledgeGraph.from_file(facts))


def test_rdf_keeps_its_labels_and_iris(tmp_path: Path) -> None:
    file = tmp_path / "places.ttl"
    file.write_text(
        "@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        'ex:zh rdfs:label "Zürich" . ex:zh ex:partOf ex:ch . ex:be ex:partOf ex:ch . _:x ex:near ex:be .\n'
    )
    index_files([file], tmp_path / "g.gamma")
    stored, kg = KnowledgeGraph.open(tmp_path / "g.gamma"), KnowledgeGraph.from_file(file)
    assert_same(stored, kg)
    for name in ("Zürich", "ex:zh", "zh", "http://example.org/zh", "<http://example.org/zh>"):
        assert stored.entity_id(name) == kg.entity_id(name), name
    zurich = stored.entity_id("Zürich")
    assert stored.entities.identifier(zurich) == kg.entities.identifier(zurich) == "http://example.org/zh"


def test_appending_keeps_ids_and_counts_repeated_facts_once(facts: Path, store: Path) -> None:
    before = KnowledgeGraph.open(store)
    index_files([facts.with_name("more.tsv")], store, append=True)
    (facts.parent / "both.tsv").write_text(FACTS + MORE)
    after = KnowledgeGraph.open(store)
    assert_same(after, KnowledgeGraph.from_file(facts.parent / "both.tsv"))
    assert after.entities[: before.num_entities] == list(before.entities), "an open store stays readable"
    verify_store(store)
    assert len([entry for entry in store.iterdir() if entry.is_dir()]) == 1, "the generation before is cleared away"


def test_a_store_is_an_input_too(facts: Path, store: Path) -> None:
    index_files([store, facts.with_name("more.tsv")], facts.with_name("h.gamma"))
    assert KnowledgeGraph.open(facts.with_name("h.gamma")).num_triples == 4
    with pytest.raises(DataError, match="a store is there already"):
        index_files([facts], store)
    index_files([facts.with_name("more.tsv")], store, replace=True)
    assert KnowledgeGraph.open(store).num_triples == 2


def test_a_run_that_was_killed_while_tidying_up_is_finished_by_the_same_call(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(store: Path) -> None:
        raise KeyboardInterrupt

    place = tmp_path / "tidied.gamma"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(writing_stores, "tidy", killed)
        index_files([facts], place)
    assert (place / "building").is_dir()
    with pytest.raises(DataError, match="a store is there already"):
        index_files([facts.with_name("more.tsv")], place)
    index_files([facts], place)
    verify_store(place)
    assert not (place / "building").exists()
    with pytest.raises(DataError, match="a store is there already"):
        index_files([facts], place)


def test_damage_is_found(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = next(store.glob("*/edges.neighbour.bin"))
    content = array.read_bytes()
    array.write_bytes(content[:-4])
    with pytest.raises(DataError, match=r"neighbour\.bin: 20 bytes where 24 were written"):
        KnowledgeGraph.open(store)
    array.write_bytes(content[:-1] + b"\1")
    with pytest.raises(DataError, match=r"neighbour\.bin: changed since it was written"):
        KnowledgeGraph.open(store)
    monkeypatch.setattr(stored_facts, "VERIFIED_BYTES", 0)
    KnowledgeGraph.open(store)  # of a large store no content is read
    with pytest.raises(DataError, match="changed since it was written"):
        verify_store(store)
    array.unlink()
    with pytest.raises(DataError, match="missing"):
        KnowledgeGraph.open(store)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"version": 99}, "a store of version 99, this program reads version 1"),
        ({"num_triples": 5}, "changed since it was written"),
        ({"format": "other"}, "not the header of a graph"),
    ],
)
def test_a_header_that_is_not_ours_is_refused(store: Path, change: dict[str, object], complaint: str) -> None:
    told = json.loads((store / HEADER).read_text())
    (store / HEADER).write_text(json.dumps({**told, **change}))
    with pytest.raises(DataError, match=complaint):
        KnowledgeGraph.open(store)


def test_what_is_no_store_is_refused(tmp_path: Path, family: KnowledgeGraph) -> None:
    with pytest.raises(DataError, match="no such store"):
        KnowledgeGraph.open(tmp_path / "absent.gamma")
    (tmp_path / "empty.gamma").mkdir()
    with pytest.raises(DataError, match=r"no header\.json in it"):
        KnowledgeGraph.from_file(tmp_path / "empty.gamma")
    (tmp_path / "empty.gamma" / "letter.txt").touch()
    with pytest.raises(DataError, match=r"other things in it \(letter\.txt\)"):
        family.save(tmp_path / "empty.gamma")


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """A disk that takes no more, as far as a process can tell."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [10, 200, 600])
def test_a_full_disk_leaves_the_old_store_whole(facts: Path, store: Path, size: int) -> None:
    with pytest.raises(DataError, match=r"can't write .*: (File too large|.*Os)"), files_no_larger_than(size):
        index_files([facts.with_name("more.tsv")], store, append=True)
    verify_store(store)
    assert_same(KnowledgeGraph.open(store), KnowledgeGraph.from_file(facts))
    index_files([facts.with_name("more.tsv")], store, append=True)
    assert KnowledgeGraph.open(store).num_triples == 4, "with room again the same call goes on"


def test_a_second_writer_is_refused_and_readers_are_not(facts: Path, store: Path) -> None:
    with locked(store / ".lock", "test"):
        with pytest.raises(DataError, match="another process"):
            index_files([facts.with_name("more.tsv")], store, append=True)
        KnowledgeGraph.open(store)


@pytest.mark.parametrize(
    ("limit", "most", "complaint"),
    [
        ("MOST_ENTITIES", 2**31 - 1, "entities; a store holds at most 1"),
        ("MOST_TRIPLES", 2**40, "triples; a store"),
        ("MOST_RELATIONS", 2**30 - 1, "relations; a store holds at most 1"),
    ],
)
def test_only_what_32_and_40_bits_can_number_is_refused(
    facts: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, complaint: str
) -> None:
    assert getattr(indexing, limit) == most
    monkeypatch.setattr(indexing, limit, 1)
    with pytest.raises(DataError, match=complaint):
        index_files([facts], facts.with_name("g.gamma"))


def store_of_a_stopped_run(facts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Facts are read and identified, and not sorted yet."""
    out = facts.with_name("g.gamma")
    with monkeypatch.context() as broken:
        broken.setattr(sort.EdgeSorter, "split", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            index_files([facts], out)
    return out


def test_a_stopped_run_is_taken_up_where_it_ended(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = store_of_a_stopped_run(facts, monkeypatch)
    with pytest.raises(DataError, match="indexing was not finished"):
        KnowledgeGraph.open(out)
    with monkeypatch.context() as watched:
        watched.setattr(indexing, "read_into", lambda *_: pytest.fail("what was read is read again"))
        told: list[str] = []
        index_files([facts], out, tell=told.append)
    assert told[0] == "taking up an earlier run (read, identify)"
    assert_same(KnowledgeGraph.open(out), KnowledgeGraph.from_file(facts))


@pytest.mark.parametrize("append", [False, True])
def test_a_run_killed_before_its_arrays_were_the_stores_ends_well_when_called_again(
    append: bool, facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "moved.gamma"
    if append:
        index_files([facts.with_name("more.tsv")], place)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Header, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        index_files([facts], place, append=append)
    assert len(list(place.glob("[0-9a-f]*[0-9a-f]"))) == 1 + append
    index_files([facts], place, append=append)
    verify_store(place)
    assert KnowledgeGraph.open(place).num_triples == (4 if append else 3)
    assert not (place / "building").exists() and len(list(place.glob("[0-9a-f]*[0-9a-f]"))) == 1


def test_an_interrupt_that_duckdb_swallows_is_one_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), identify._database(tmp_path, 1 << 28, 1):
        raise RuntimeError("Query interrupted")


def test_too_little_memory_for_the_names_says_that_the_same_command_goes_on(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match=r"not enough memory to put the names in order with 256 MB .* another --memory"),
        identify._database(tmp_path, 1 << 28, 1) as run,
    ):
        run("SELECT max(length(name)) FROM (SELECT list(i)::VARCHAR AS name FROM range(100_000_000) t(i))")


def test_a_damaged_record_of_a_stopped_run_is_not_believed(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = store_of_a_stopped_run(facts, monkeypatch)
    progress = out / indexing.BUILDING / indexing.PROGRESS
    progress.write_text(progress.read_text().replace('"triples": ', '"triples": 1'))
    told: list[str] = []
    index_files([facts], out, tell=told.append)
    assert told[0].startswith("reading")
    assert_same(KnowledgeGraph.open(out), KnowledgeGraph.from_file(facts))


def test_changed_inputs_are_read_anew(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = store_of_a_stopped_run(facts, monkeypatch)
    facts.write_text(FACTS + MORE)
    index_files([facts], out)
    assert_same(KnowledgeGraph.open(out), KnowledgeGraph.from_file(facts))


names_of = st.lists(
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6), unique=True, max_size=30
)


@settings(max_examples=30, deadline=None)
@given(names_of, names_of)
def test_every_name_has_its_id_and_no_other_name_has_one(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], others: list[str]
) -> None:
    folder = ArrayFolder(tmp_path_factory.mktemp("names"))
    stored = StoredNames(folder, "entity", write_names(folder, [names], "entity"))
    assert [stored.id(name) for name in names] == list(range(len(names)))
    assert [name in stored for name in others] == [name in names for name in others]
    assert list(stored) == stored[:] == names
    by_name = sorted(names, key=str.casefold)
    assert [name.casefold() for name in stored.search("", 100)] == [name.casefold() for name in by_name]
    for name in names:
        assert name in stored.search(name, 100)


def test_an_unknown_name_of_a_store_suggests_the_nearest(store: Path) -> None:
    names = KnowledgeGraph.open(store).entities
    with pytest.raises(UnknownNameError, match="no entity is named 'Zürch' among 4; did you mean 'Zürich'"):
        names.id("Zürch")
    assert names.id("ZÜRICH") == names.id("Zürich"), "case is ignored where one name fits"
    with pytest.raises(UnknownNameError):
        names.id("ZÜRICH", exact=True)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 40))
def test_edges_sorted_in_parts_are_those_sorted_at_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, num_nodes: int, per_part: int
) -> None:
    triples = np.random.default_rng(seed).integers(0, [num_nodes, 3, num_nodes], size=(60, 3))
    path = tmp_path_factory.mktemp("sort")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "LEAST_EDGES", per_part)
        sorter = sort.EdgeSorter(path, num_nodes, 3, memory=0)
    for part in (triples[:25], triples[25:]):
        sorter.count(part)
    folder = ArrayFolder(path)
    count = sorter.write(sorter.split([triples[:25], triples[25:]]), folder)
    distinct = np.unique(triples, axis=0)
    expected = Edges.of_triples(distinct, num_nodes, 3)
    assert count == len(distinct)
    for name in EDGE_ARRAYS[:-1]:
        assert folder.map(f"edges.{name}").tolist() == getattr(expected, name).tolist(), name


def test_a_store_that_lacks_an_array_is_refused(store: Path) -> None:
    header = Header.read(store)
    arrays = {name: facts for name, facts in header.arrays.items() if name != "relations.pairs.neighbour"}
    replace(header, arrays=arrays).write(store)
    with pytest.raises(DataError, match=r"an array is missing \(relations\.pairs\.neighbour\)"):
        KnowledgeGraph.open(store)


def test_a_full_disk_that_polars_tells_of_says_what_to_do(tmp_path: Path) -> None:
    told = "parquet: File out of specification: underlying IO error: No space left on device (os error 28)"
    with pytest.raises(DataError, match="No space left on device; make room"), disk_errors(tmp_path / "chunk.parquet"):
        raise pl.exceptions.ComputeError(told)
    with pytest.raises(DataError, match=r"can't write .*: something else"), disk_errors(tmp_path / "chunk.parquet"):
        raise pl.exceptions.ComputeError("something else")


def test_a_full_disk_while_names_or_edges_are_sorted_is_told_in_the_same_words(
    facts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    told = 'IO Error: Async write failed for range [offset=27, size=9]: {"message":"No space left on device"}'
    with monkeypatch.context() as full:
        full.setattr(duckdb, "connect", lambda: (_ for _ in ()).throw(duckdb.IOException(told)))
        with pytest.raises(DataError, match=r"can't write .*building: No space left on device; make room"):
            index_files([facts], facts.with_name("g.gamma"))
    sorter = sort.EdgeSorter(facts.parent, 100, 1, memory=0)
    triples = np.stack((np.arange(100), np.zeros(100, dtype=np.int64), np.arange(100)), axis=1)
    sorter.count(triples)
    with pytest.raises(DataError, match=r"can't write .*edges\.bin: File too large"), files_no_larger_than(500):
        sorter.split([triples])


def test_a_store_of_many_relations_keeps_as_many_meetings_as_memory_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamma_kg.graph.relation_meetings.MOST_MEETINGS", 2_000)
    monkeypatch.setattr("gamma_kg.graph.relation_graph.BAND_EDGES", 700)
    rng = np.random.default_rng(3)
    triples = rng.integers(0, [40, 60, 40], size=(900, 3))
    kg = KnowledgeGraph(triples, [f"e{i}" for i in range(40)], [f"r{i}" for i in range(60)])
    kg.save(tmp_path / "g.gamma")
    stored = KnowledgeGraph.open(tmp_path / "g.gamma")
    for kind in KINDS:
        mine, theirs = kg.relation_graph_as(kind), stored.relation_graph_as(kind)
        for name in ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse"):
            assert getattr(mine, name).equal(getattr(theirs, name)), (kind, name)
    assert kg.relation_graph.num_edges < 4 * 120**2 / 2, "nearly all of them meet"
