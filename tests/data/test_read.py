"""Files, frames and iterables of triples become ids by first appearance, whatever the format."""

from __future__ import annotations

import ast
import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import gamma_kg.data.lines
from gamma_kg.data.read import encode_frame, encode_triples, read_triples
from gamma_kg.errors import ConfigError, DataError, UnknownNameError

FACTS = [("Kenya", "borders", "Uganda"), ("Nairobi", "capital of", "Kenya"), ("Kenya", "borders", "Uganda")]
NAMES = st.text(st.characters(exclude_characters="\t\r\n\0", exclude_categories=["Cs"]), min_size=1)


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def lines(separator: str) -> str:
    return "".join(separator.join(fact) + "\n" for fact in FACTS)


def turtle(path: Path, body: str) -> Path:
    return write(path, "@prefix e: <http://e.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n" + body)


def named(encoded: object) -> list[tuple[str, str, str]]:
    return [(encoded.entities[h], encoded.relations[r], encoded.entities[t]) for h, r, t in encoded.triples]


def test_ids_follow_first_appearance_head_before_tail_and_keep_order_and_duplicates(tmp_path: Path) -> None:
    encoded = read_triples(write(tmp_path / "f.tsv", lines("\t")))
    assert list(encoded.entities) == ["Kenya", "Uganda", "Nairobi"]
    assert list(encoded.relations) == ["borders", "capital of"]
    assert encoded.triples.dtype == np.int64
    assert encoded.triples.tolist() == [[0, 0, 1], [2, 1, 0], [0, 0, 1]]
    assert encoded.report.rows == 3


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed_files_give_the_same(tmp_path: Path, pack) -> None:
    ending = "gz" if pack is gzip.compress else "zst"
    path = tmp_path / f"f.tsv.{ending}"
    path.write_bytes(pack(lines("\t").encode()))
    assert named(read_triples(path)) == FACTS


@pytest.mark.parametrize("size", [1, 7, 64])
def test_chunks_of_any_size_give_the_same(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gamma_kg.data.lines, "CHUNK_BYTES", size)
    assert named(read_triples(write(tmp_path / "f.tsv", lines("\t")))) == FACTS
    quoted = 'a,r,"b\nb"\n' * 20 + "c,r,d\n" * 20
    rows = named(read_triples(write(tmp_path / "f.csv", quoted)))
    assert rows == [("a", "r", "b\nb")] * 20 + [("c", "r", "d")] * 20


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=12))
def test_any_names_survive_tsv_json_lines_and_parquet(tmp_path_factory: pytest.TempPathFactory, facts) -> None:
    import json

    folder = tmp_path_factory.mktemp("names")
    # A first line that looks like a header would be taken for one; that is asked for elsewhere.
    facts = [("first head", "first relation", "first tail"), *facts]
    write(folder / "f.tsv", "".join("\t".join(fact) + "\n" for fact in facts))
    write(folder / "f.jsonl", "".join(json.dumps(fact) + "\n" for fact in facts))
    pl.DataFrame(facts, schema=["head", "relation", "tail"], orient="row").write_parquet(folder / "f.parquet")
    for name in ("f.jsonl", "f.parquet", "f.tsv"):
        assert named(read_triples(folder / name)) == facts


@pytest.mark.parametrize(
    "header",
    [
        "head\trelation\ttail",
        "Subject\tPredicate\tObject",
        "h\tr\tt",
        "source\ttype\ttarget",
        "#head\trelation\ttail",
        "?s\t?p\t?o",
    ],
)
def test_well_known_headers_are_recognised(tmp_path: Path, header: str) -> None:
    assert named(read_triples(write(tmp_path / "f.tsv", header + "\n" + lines("\t")))) == FACTS


def test_a_well_known_header_sets_the_order_of_columns(tmp_path: Path) -> None:
    text = "weight,predicate,object,subject\n0.5,borders,Uganda,Kenya\n"
    assert named(read_triples(write(tmp_path / "f.csv", text))) == FACTS[:1]


def test_columns_by_name_pick_from_odd_headers(tmp_path: Path) -> None:
    text = 'nr,"Land, deutsch",Beziehung,Nachbar\n1,Kenya,borders,Uganda\n'
    path = write(tmp_path / "f.csv", text)
    assert named(read_triples(path, columns=["Land, deutsch", "Beziehung", "Nachbar"])) == FACTS[:1]


def test_columns_by_position_count_from_0(tmp_path: Path) -> None:
    path = write(tmp_path / "f.tsv", "1\tUganda\tborders\tKenya\n")
    assert named(read_triples(path, columns=[3, 2, 1])) == FACTS[:1]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["subjekt", "predicate", "object"], "no column is named 'subjekt' \\(the head\\); did you mean 'subject'"),
        ([0, 1, 9], "no column 9 for the tail; there are 4, counted from 0"),
        (["x", "predicate", "object"], "2 columns are named 'x'; choose one by position, counted from 0: 2 or 3"),
        ([0, 0, 1], "must be three different ones"),
        ([0, 1], "columns must name three columns"),
    ],
)
def test_columns_that_do_not_fit_are_explained(tmp_path: Path, columns, words: str) -> None:
    path = write(tmp_path / "f.csv", "subject,predicate,x,x,object\n".replace("x,x,object", "x,x") + "a,r,b,c\n")
    if "object" in columns and "subjekt" in columns:
        path = write(tmp_path / "f.csv", "subject,predicate,object\na,r,b\n")
    with pytest.raises(DataError, match=words):
        read_triples(path, columns=columns)


def test_an_unknown_option_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no option 'skip_badlines'; did you mean 'skip_bad_lines'"):
        read_triples(write(tmp_path / "f.tsv", lines("\t")), skip_badlines=True)


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no format is named 'ttll'; did you mean 'ttl'"):
        read_triples(write(tmp_path / "f.tsv", lines("\t")), format="ttll")


def test_a_folder_is_read_in_order_of_names_without_companions(tmp_path: Path) -> None:
    write(tmp_path / "b.tsv", "c\tr\td\n")
    write(tmp_path / "a.txt", "a\tr\tb\n")
    write(tmp_path / "README.txt", "nothing to see here, move on\n")
    (tmp_path / "part").mkdir()
    write(tmp_path / "part" / "z.tsv", "e\tr\tf\n")
    encoded = read_triples(tmp_path)
    assert named(encoded) == [("a", "r", "b"), ("c", "r", "d"), ("e", "r", "f")]
    assert len(encoded.report.files) == 3
    assert encoded.report.notes == (f"{tmp_path}: took a.txt, b.tsv, part/z.tsv",)


def parquet(columns: dict[str, list[str]]) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


FULL_PART = parquet({"head": ["a"], "relation": ["r"], "tail": ["b"]})
PARTS = {  # an empty part, a full one, and what they are called
    "Parquet": (parquet({"head": [], "relation": [], "tail": []}), FULL_PART, "parquet"),
    "Parquet without columns": (parquet({}), FULL_PART, "parquet"),
    "TSV": (b"\n \n", b"a\tr\tb\n", "tsv"),
    "CSV": (b"", b"a,r,b\n", "csv"),
    "packed TSV": (gzip.compress(b""), gzip.compress(b"a\tr\tb\n"), "tsv.gz"),
    "JSON lines": (b"\n", b'["a", "r", "b"]\n', "jsonl"),
}


@pytest.mark.parametrize(("empty", "full", "ending"), PARTS.values(), ids=PARTS)
def test_an_empty_part_is_passed_over_among_others_and_refused_alone(
    tmp_path: Path, empty: bytes, full: bytes, ending: str
) -> None:
    alone = tmp_path / f"part-0.{ending}"
    alone.write_bytes(empty)
    for path in (alone, tmp_path):
        with pytest.raises(DataError, match=r"is empty|has no rows"):
            read_triples(path)
    (tmp_path / f"part-1.{ending}").write_bytes(full)
    (tmp_path / f"part-2.{ending}").write_bytes(empty)
    encoded = read_triples(tmp_path)
    assert named(encoded) == [("a", "r", "b")]
    assert encoded.report.files == (f"{tmp_path}/part-1.{ending}",)
    assert encoded.report.notes[-1].startswith("2 of 3 files are empty and were passed over: ")
    (tmp_path / f"part-1.{ending}").write_bytes(empty)
    with pytest.raises(DataError, match="no triples found"):
        read_triples(tmp_path)


def test_a_folder_of_several_kinds_is_not_one_graph(tmp_path: Path) -> None:
    write(tmp_path / "graph.ttl", "<x:a> <x:r> <x:b> .")
    write(tmp_path / "queries.tsv", "a\tr\t?\n")
    with pytest.raises(DataError, match=r"files of several kinds: 1 ttl \(graph.ttl\), 1 tsv \(queries.tsv\); name"):
        read_triples(tmp_path)
    encoded = read_triples(tmp_path, format="ttl")
    assert encoded.report.notes == (f"{tmp_path}: took graph.ttl; left out queries.tsv",)


@pytest.mark.parametrize("graph", ["train", "inference"])
def test_of_a_benchmark_folder_the_graph_alone_is_taken(tmp_path: Path, graph: str) -> None:
    for name in {"train", graph, "valid", "test"}:
        write(tmp_path / f"{name}.txt", f"{name}\tr\tb\n")
    encoded = read_triples(tmp_path)
    assert named(encoded) == [(graph, "r", "b")]
    assert f"took {graph}.txt; left out" in encoded.report.notes[0] and "test.txt" in encoded.report.notes[0]


RDF = {
    "f.nt": "<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n",
    "f.nq": "<http://e.org/a> <http://e.org/p> <http://e.org/b> <http://e.org/g> .\n",
    "f.ttl": "@prefix e: <http://e.org/> . e:a e:p e:b .",
    "f.trig": "@prefix e: <http://e.org/> . e:g { e:a e:p e:b . }",
    "f.n3": "@prefix e: <http://e.org/> . e:a e:p e:b .",
    "f.rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    '<rdf:Description rdf:about="http://e.org/a"><e:p rdf:resource="http://e.org/b"/></rdf:Description></rdf:RDF>',
    "f.jsonld": '{"@id": "http://e.org/a", "http://e.org/p": {"@id": "http://e.org/b"}}',
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", RDF)
def test_every_rdf_syntax_gives_the_same_triple(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(RDF[name].encode()) if packed else RDF[name].encode())
    encoded = read_triples(path)
    assert named(encoded) == [("e:a", "e:p", "e:b")]
    assert encoded.entities.identifier(1) == "http://e.org/b"
    # By content alone: the name says nothing.
    write(tmp_path / "facts", RDF[name])
    assert named(read_triples(tmp_path / "facts")) == [("e:a", "e:p", "e:b")]


def test_literals_are_counted_or_kept(tmp_path: Path) -> None:
    path = turtle(tmp_path / "f.ttl", 'e:a e:p e:b ; e:age 7 ; e:name "Ann"@en .')
    assert read_triples(path).report.literals_skipped == 2
    kept = read_triples(path, literals="as-entities")
    assert kept.report.literals_skipped == 0
    assert named(kept)[2] == ("e:a", "e:name", '"Ann"@en')


def test_labels_are_shown_and_all_names_are_understood(tmp_path: Path) -> None:
    body = 'e:ke rdfs:label "Kenia"@de, "Kenya"@en ; e:borders e:ug . e:borders rdfs:label "has border with" .'
    encoded = read_triples(turtle(tmp_path / "f.ttl", body))
    assert named(encoded) == [("Kenya", "has border with", "e:ug")]
    for name in ("Kenya", "e:ke", "http://e.org/ke", "<http://e.org/ke>", "ke"):
        assert encoded.entities.id(name) == 0
        assert name in encoded.entities
    assert encoded.entities.id("Kenia") == encoded.entities.id("kenya") == 0
    assert encoded.relations.id("has border with") == 0


def test_a_label_in_a_foreign_language_gives_way_to_an_identifier_of_words(tmp_path: Path) -> None:
    body = 'e:NamedPizza rdfs:label "PizzaComUmNome"@pt ; e:p e:Q42 . e:Q42 rdfs:label "Douglas"@pt .'
    path = turtle(tmp_path / "f.ttl", body)
    assert list(read_triples(path).entities) == ["e:NamedPizza", "Douglas"]
    assert read_triples(path).entities.id("PizzaComUmNome") == 0
    assert list(read_triples(path, languages=["pt"]).entities) == ["PizzaComUmNome", "Douglas"]


def test_a_label_of_two_entities_is_shown_apart_and_refused_alone(tmp_path: Path) -> None:
    body = 'e:a rdfs:label "Paris" ; e:p e:b . e:b rdfs:label "Paris" .'
    encoded = read_triples(turtle(tmp_path / "f.ttl", body))
    assert list(encoded.entities) == ["Paris (e:a)", "Paris (e:b)"]
    with pytest.raises(UnknownNameError, match=r"'Paris' means 2 entity names; use 'Paris \(e:a\)' or"):
        encoded.entities.id("Paris")


def test_namespaces_without_a_prefix_get_one(tmp_path: Path) -> None:
    text = "".join(
        f"<http://www.acme.com/people/p{i}> <http://www.wikidata.org/prop/direct/P31> <http://acme.com/#x{i}> .\n"
        for i in range(3)
    )
    encoded = read_triples(write(tmp_path / "f.nt", text))
    assert named(encoded)[0] == ("people:p0", "wdt:P31", "acme:x0")


def test_blank_nodes_of_two_files_stay_apart_and_have_the_same_names_in_every_run(tmp_path: Path) -> None:
    for name in ("a.ttl", "b.ttl"):
        turtle(tmp_path / name, "_:x e:p [ e:p e:b ] .")
    first, second = read_triples(tmp_path), read_triples(tmp_path)
    assert len(first.entities) == 5
    assert list(first.entities) == list(second.entities)


def test_frames_of_polars_and_pandas_give_the_same() -> None:
    columns = {"weight": [1.0, 2.0, 3.0], "object": [f[2] for f in FACTS], "subject": [f[0] for f in FACTS]}
    columns["predicate"] = [f[1] for f in FACTS]
    for frame in (pl.DataFrame(columns), pl.DataFrame(columns).lazy(), pd.DataFrame(columns)):
        assert named(encode_frame(frame)) == FACTS
    assert named(encode_frame(pd.DataFrame(FACTS))) == FACTS
    assert named(encode_frame(pd.DataFrame(columns), columns=["object", "predicate", "subject"]))[0] == FACTS[0][::-1]


def test_frames_that_do_not_fit_are_explained() -> None:
    with pytest.raises(DataError, match="row 2: the tail is empty"):
        encode_frame(pd.DataFrame({"h": ["a", "b"], "r": ["r", "r"], "t": ["c", None]}))
    with pytest.raises(DataError, match=r"expected 3 columns .* found 4"):
        encode_frame(pl.DataFrame({"a": [1], "b": [1], "c": [1], "d": [1]}))
    with pytest.raises(DataError, match="names must be text or numbers, but head is List"):
        encode_frame(pl.DataFrame({"h": [[1]], "r": ["r"], "t": ["t"]}))
    with pytest.raises(DataError, match="expected a polars or pandas data frame, got list"):
        encode_frame([1, 2, 3])


def test_given_lists_fix_the_vocabulary() -> None:
    encoded = encode_triples(
        FACTS, entities=["Nobody", "Uganda", "Nairobi", "Kenya"], relations=["capital of", "borders"]
    )
    assert encoded.triples.tolist() == [[3, 1, 1], [2, 0, 3], [3, 1, 1]]
    assert encoded.entities[0] == "Nobody"


def test_a_name_outside_the_given_list_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no entity is named 'Uganda' among 2"):
        encode_triples(FACTS, entities=["Kenya", "Nairobi"])
    with pytest.raises(DataError, match="names must differ, but 'Kenya' is listed twice"):
        encode_triples(FACTS, entities=["Kenya", "Nairobi", "Uganda", "Kenya"])


@pytest.mark.parametrize(
    "triple", [("a", "b"), ("a", "b", "c", "d"), 5, ("a", None, "b"), ("a", "r", ""), ("a", "r", 1.5)]
)
def test_bad_triples_are_named_by_number(triple) -> None:
    with pytest.raises(DataError, match="triple 2: "):
        encode_triples([("a", "r", "b"), triple])


def test_whole_numbers_are_names_too() -> None:
    assert named(encode_triples([(1, np.int64(2), 3)])) == [("1", "2", "3")]


def test_a_csv_that_may_have_a_header_says_what_it_did(tmp_path: Path) -> None:
    report = read_triples(write(tmp_path / "f.csv", "Land,Bezug,Nachbar\nKenya,borders,Uganda\n")).report
    assert "was read as a triple; if it names the columns, say which" in report.doubts[0]


def test_header_can_be_forced_either_way(tmp_path: Path) -> None:
    path = write(tmp_path / "f.tsv", "h\tr\tt\nKenya\tborders\tUganda\n")
    assert len(read_triples(path).triples) == 1
    assert len(read_triples(path, header=False).triples) == 2
    odd = write(tmp_path / "g.csv", "Land,Bezug,Nachbar\nKenya,borders,Uganda\n")
    assert named(read_triples(odd, header=True)) == FACTS[:1]


def test_progress_is_drawn_on_standard_error_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_triples(write(tmp_path / "f.tsv", lines("\t")), progress=True)
    assert capsys.readouterr().out == ""


def test_reading_needs_no_torch() -> None:
    folder = Path(gamma_kg.data.lines.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "torch" for name in names), path


def test_an_unknown_name_suggests_what_looks_alike_or_contains_it() -> None:
    encoded = encode_triples([("Republic of Kenya", "borders", "Uganda")])
    with pytest.raises(UnknownNameError, match="among 2; did you mean 'Uganda'"):
        encoded.entities.id("Ugandaa")
    with pytest.raises(UnknownNameError, match="among 2; did you mean 'Republic of Kenya'"):
        encoded.entities.id("kenya")
    with pytest.raises(UnknownNameError, match=r"among 2 \(`gamma describe GRAPH --search WORD` finds names\)$"):
        encoded.entities.id("Mars")


def test_a_bare_word_that_means_two_things_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f.ttl", "@prefix a: <http://a.org/> . @prefix b: <http://b.org/> . a:x a:p b:x .")
    encoded = read_triples(path)
    with pytest.raises(UnknownNameError, match="'x' means 2 entity names; use 'a:x' or 'b:x'"):
        encoded.entities.id("x")
