"""Files as people really hand them over: each kind of damage is read right or gives its clear error."""

from __future__ import annotations

import gzip
import os
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from gamma_kg.data import rdf
from gamma_kg.data.lines import MAX_LINE_BYTES
from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError

GOOD = b"Kenya\tborders\tUganda\nUganda\tborders\tKenya\n"
GOOD_NAMES = [("Kenya", "borders", "Uganda"), ("Uganda", "borders", "Kenya")]
NT = "<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n"
PARQUET_ROWS = {"head": ["Kenya", "Uganda"], "relation": ["borders"] * 2, "tail": ["Uganda", "Kenya"]}


def parquet_bytes(rows: dict[str, list[str]]) -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    pl.DataFrame(rows).write_parquet(buffer)
    return buffer.getvalue()


# Damage that does no harm: name of the file, content, and the triples that must come out.
READ_RIGHT = {
    "UTF-8 byte-order mark": ("f.tsv", b"\xef\xbb\xbf" + GOOD, GOOD_NAMES),
    "byte-order mark before a header": (
        "f.csv",
        b"\xef\xbb\xbfhead,relation,tail\nKenya,borders,Uganda\n",
        GOOD_NAMES[:1],
    ),
    "UTF-16 with byte-order mark": ("f.tsv", GOOD.decode().encode("utf-16"), GOOD_NAMES),
    "CRLF line ends": ("f.tsv", GOOD.replace(b"\n", b"\r\n"), GOOD_NAMES),
    "CRLF line ends in CSV": ("f.csv", GOOD.replace(b"\t", b",").replace(b"\n", b"\r\n"), GOOD_NAMES),
    "CR line ends": ("f.tsv", GOOD.replace(b"\n", b"\r"), GOOD_NAMES),
    "no newline at the end": ("f.tsv", GOOD.rstrip(), GOOD_NAMES),
    "blank lines": ("f.tsv", b"\n" + GOOD.replace(b"\n", b"\n\n") + b"  \n", GOOD_NAMES),
    "quotes in TSV": ("f.tsv", b'6" nail\tfits\t"loose\n', [('6" nail', "fits", '"loose')]),
    "quoted separators in CSV": ("f.csv", b'"Nice, France",in,"a ""b"""\n', [("Nice, France", "in", 'a "b"')]),
    "quoted line end in CSV": ("f.csv", b'a,r,"b\nc"\nd,r,e\n', [("a", "r", "b\nc"), ("d", "r", "e")]),
    "semicolons in CSV": ("f.csv", b"Kenya;borders;Uganda\n", GOOD_NAMES[:1]),
    "tabs in CSV": ("f.csv", GOOD, GOOD_NAMES),
    "spaces after commas": ("f.csv", b"Kenya, borders, Uganda\n", GOOD_NAMES[:1]),
    "spaces instead of tabs": ("f.txt", GOOD.replace(b"\t", b"  "), GOOD_NAMES),
    "names with spaces": ("f.tsv", b"New  York\tis in\tUnited States\n", [("New  York", "is in", "United States")]),
    "no ending in the name": ("facts", GOOD, GOOD_NAMES),
    "unknown ending": ("facts.dat", GOOD, GOOD_NAMES),
    "gzip without .gz": ("f.tsv", gzip.compress(GOOD), GOOD_NAMES),
    "gzip in several members": ("f.tsv.gz", gzip.compress(GOOD[:10]) + gzip.compress(GOOD[10:]), GOOD_NAMES),
    "zstd in several frames": ("f.tsv.zst", zstandard.compress(GOOD[:10]) + zstandard.compress(GOOD[10:]), GOOD_NAMES),
    "upper-case ending": ("F.CSV", GOOD.replace(b"\t", b","), GOOD_NAMES),
    "Parquet under another name": ("f.tsv", parquet_bytes(PARQUET_ROWS), GOOD_NAMES),
    "null, NA and None as names": (
        "f.tsv",
        b"null\tNA\tNone\nnan\tNaN\tN/A\n",
        [("null", "NA", "None"), ("nan", "NaN", "N/A")],
    ),
    "numbers as names": ("f.csv", b"007,1.50,1e3\n", [("007", "1.50", "1e3")]),
    "non-breaking and odd characters": (
        "f.tsv",
        "Çà\u00a0là\t→\t日本\u2028語\n".encode(),
        [("Çà\u00a0là", "→", "日本\u2028語")],
    ),
    "comment lines in N-Triples": ("f.nt", f"# hello\n\n{NT}".encode(), [("e:a", "e:p", "e:b")]),
    "byte-order mark in Turtle": (
        "f.ttl",
        b"\xef\xbb\xbf@prefix e: <http://e.org/> . e:a e:p e:b .",
        [("e:a", "e:p", "e:b")],
    ),
    "duplicate header that is not needed": (
        "f.csv",
        b"x,head,relation,tail,x\n1,Kenya,borders,Uganda,2\n",
        GOOD_NAMES[:1],
    ),
}

# Damage that must stop the reading: name of the file, content, and words of the error.
REFUSED = {
    "an empty file": ("f.tsv", b"", "f.tsv: the file is empty"),
    "only blank lines": ("f.tsv", b"\n \n\r\n", "f.tsv: the file is empty"),
    "only white space of Unicode": ("f.tsv", "\u2028\u3000\n\u00a0".encode(), "f.tsv: the file is empty"),
    "an empty gzip": ("f.tsv.gz", gzip.compress(b""), "the file is empty"),
    "two columns": ("f.tsv", GOOD + b"Kenya\tborders\n", "f.tsv line 3: expected 3 tab-separated columns .*found 2"),
    "two columns from the start": ("f.tsv", b"Kenya\tborders\n", "line 1: expected 3 tab-separated columns .*found 2"),
    "four columns": ("f.tsv", GOOD + b"Kenya\tborders\tUganda\t1\n", "line 3: expected 3 .* found 4"),
    "four columns from the start": ("f.tsv", b"a\tb\tc\td\n", "line 1: expected 3 columns .*found 4; say which"),
    "an empty cell": ("f.tsv", GOOD + b"Kenya\t\tUganda\n", "line 3 column 2: the relation is empty"),
    "an empty cell in CSV": ("f.csv", b"a,r,b\na,r,\n", "line 2 column 3: the tail is empty"),
    "a blank cell in CSV": ("f.csv", b"a,r,b\n  ,r,b\n", "line 2 column 1: the head is empty"),
    "Latin-1": ("f.tsv", "a\tr\tb\nMünchen\tr\tc\n".encode("latin-1"), "line 2 column 2: byte 0xfc is not UTF-8; save"),
    "Latin-1 in N-Triples": ("f.nt", NT.encode() + "# ü\n".encode("latin-1"), "line 2 column 3: byte 0xfc"),
    "Latin-1 in Turtle": ("f.ttl", "<a:b> <a:c> <a:d> .\n# ü\n".encode("latin-1"), "line 2 column 3: byte 0xfc is not"),
    "NUL bytes": ("f.tsv", GOOD + b"a\tr\tb\0c\n", "line 3 column 6: a NUL byte"),
    "UTF-16 without byte-order mark": ("f.tsv", GOOD.decode().encode("utf-16-le"), "line 1 column 2: a NUL byte"),
    "binary": ("f.tsv", bytes(range(256)) * 50, "line 1 column 1: a NUL byte"),
    "a zip archive": ("f.csv", b"PK\x03\x04" + b"\0" * 50, "a zip archive or an Excel workbook"),
    "a picture": ("f.tsv", b"\x89PNG\r\n\x1a\n\0\0", "a PNG picture"),
    "a pickle": ("f.tsv", b"\x80\x04\x95abc", "a Python pickle"),
    "a database": ("f.tsv", b"SQLite format 3\0", "an SQLite database"),
    "truncated gzip": ("f.tsv.gz", gzip.compress(os.urandom(3000))[:-900], "ends too early; the file is truncated"),
    "gzip cut in its header": ("f.tsv.gz", b"\x1f\x8b\x08", "ends too early"),
    "damaged gzip": ("f.tsv.gz", gzip.compress(GOOD)[:12] + b"xxxx" + gzip.compress(GOOD)[16:], "data is damaged"),
    "text named gzip": ("f.tsv.gz", GOOD, "the name says gzip, but the content is not gzip"),
    "truncated zstd": ("f.tsv.zst", zstandard.compress(os.urandom(3000))[:-900], "ends too early"),
    "damaged zstd": ("f.tsv.zst", zstandard.compress(GOOD)[:4] + b"\xff" * 20, "data is damaged"),
    "an open quote": ("f.csv", b'a,r,b\nc,r,"d\ne,r,f\n', "line 2: a quote is opened here and not closed"),
    "broken quoting": ("f.csv", b'a,r,b\nc,"r"x,d\n', "line 2: the quoting is broken"),
    "a header only": ("f.csv", b"head,relation,tail\n", "no triples found"),
    "truncated Parquet": ("f.parquet", parquet_bytes(PARQUET_ROWS)[:100], "not a sound Parquet file"),
    "text named Parquet": ("f.parquet", GOOD, "not a sound Parquet file"),
    "nulls in Parquet": (
        "f.parquet", parquet_bytes({"h": ["a", None], "r": ["r"] * 2, "t": ["b"] * 2}), "row 2: the head is empty"
    ),
    "broken JSON": ("f.jsonl", b'["a","r","b"]\n["a", "r" "b"]\n', "line 2 column 11: not JSON"),
    "a missing key": ("f.jsonl", b'{"h":1,"r":2,"t":3}\n{"h":"a","r":"r"}\n', "line 2: the tail \\('t'\\) is missing"),
    "a JSON null": ("f.jsonl", b'["a","r",null]\n', "line 1: the tail .* found null"),
    "keys without a meaning": ("f.jsonl", b'{"foo":"a","bar":"r","baz":"b"}\n', "which of the keys foo, bar, baz"),
    "JSON that is a number": ("f.jsonl", b"12\n", "line 1: expected an object or array, found int"),
    "a bad N-Triples line": ("f.nt", (NT + "<http://e.org/a> what\n").encode(), "f.nt line 2 column"),
    "bad Turtle": ("f.ttl", b"@prefix e: <http://e.org/> .\ne:a e:p .\n", "f.ttl line 2 column 9: "),
    "an unknown prefix": ("f.ttl", b"<a:b> <a:c> <a:d> .\nx:y x:z x:w .\n", "f.ttl line 2 column"),
    "truncated XML": ("f.rdf", b'<?xml version="1.0"?><rdf:RDF', "f.rdf"),
    "XML that is not RDF": ("f.xml", b"<html><body>hello</body></html>", "f.xml"),
    "bad JSON-LD": ("f.jsonld", b'{"@id": ', "f.jsonld"),
    "only literals": ("f.nt", b'<http://e.org/a> <http://e.org/p> "x" .\n', "1 literals skipped.*as-entities"),
}  # fmt: skip


def named(path: Path, **options: object) -> list[tuple[str, str, str]]:
    encoded = read_triples(path, **options)
    return [(encoded.entities[h], encoded.relations[r], encoded.entities[t]) for h, r, t in encoded.triples]


@pytest.mark.parametrize("kind", READ_RIGHT)
def test_harmless_damage_is_read_right(kind: str, tmp_path: Path) -> None:
    name, content, triples = READ_RIGHT[kind]
    (tmp_path / name).write_bytes(content)
    assert named(tmp_path / name) == triples


@pytest.mark.parametrize("kind", REFUSED)
def test_damage_gives_its_clear_error(kind: str, tmp_path: Path) -> None:
    name, content, words = REFUSED[kind]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        read_triples(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_at_least_thirty_kinds_of_damage_are_tried() -> None:
    assert len(READ_RIGHT) + len(REFUSED) >= 30


def test_latin_1_is_read_when_named(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_bytes("München\tin\tBayern\n".encode("latin-1"))
    assert named(tmp_path / "f.tsv", encoding="latin-1") == [("München", "in", "Bayern")]


def test_an_unknown_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_bytes(GOOD)
    with pytest.raises(DataError, match="no encoding is named 'utf-9'"):
        read_triples(tmp_path / "f.tsv", encoding="utf-9")


def test_a_missing_file_suggests_near_names(tmp_path: Path) -> None:
    (tmp_path / "facts.tsv").write_bytes(GOOD)
    with pytest.raises(DataError, match=r"no such file: .*fcats.tsv; did you mean 'facts.tsv'"):
        read_triples(tmp_path / "fcats.tsv")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no folder .*nowhere either"):
        read_triples(tmp_path / "nowhere" / "facts.tsv")


def test_a_cyclic_symlink_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").symlink_to(tmp_path / "b.tsv")
    (tmp_path / "b.tsv").symlink_to(tmp_path / "a.tsv")
    with pytest.raises(DataError, match=r"a.tsv: the symbolic link leads back to itself"):
        read_triples(tmp_path / "a.tsv")


def test_a_folder_that_links_to_itself_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_bytes(GOOD)
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    assert named(tmp_path) == GOOD_NAMES


def test_a_file_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.tsv"
    path.write_bytes(GOOD)

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Not by chmod: tests also run as root, whom no file refuses.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"f\.tsv: no permission to read it"):
        read_triples(path)


def test_an_endless_line_stops_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "f.tsv"
    path.write_bytes(GOOD + b"x" * (3 * MAX_LINE_BYTES))
    with pytest.raises(DataError, match="line 3: longer than 16 MB without a line end"):
        read_triples(path)


def test_a_long_name_is_read_right(tmp_path: Path) -> None:
    (tmp_path / "f.tsv").write_bytes(b"x" * 1_000_000 + b"\tr\ty\n")
    assert len(named(tmp_path / "f.tsv")[0][0]) == 1_000_000


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_an_endless_device_is_refused() -> None:
    with pytest.raises(DataError, match="longer than 16 MB"):
        read_triples("/dev/zero")


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing here")
    with pytest.raises(DataError, match="holds no file with a known ending"):
        read_triples(tmp_path)


def test_a_broken_file_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(GOOD)
    (tmp_path / "b.tsv").write_bytes(b"Kenya\tborders\n")
    with pytest.raises(DataError, match=r"b\.tsv line 1"):
        read_triples(tmp_path)


SKIPPABLE = {
    "f.tsv": b"a\tr\tb\nbad\nc\tr\td\ne\t\tf\n",
    "f.csv": b'a,r,b\n"c",r\nc,r,d\ne,"r"x,f\n',
    "f.txt": b"a r b\nbad line\nc r d\nx\n",
    "f.jsonl": b'["a","r","b"]\n{\n["c","r","d"]\n["e",null,"f"]\n',
    "f.nt": b"<x:a> <x:r> <x:b> .\nbad\n<x:c> <x:r> <x:d> .\n<x:a> .\n",
    "f.ttl": b"@prefix x: <x:> .\nx:a x:r x:b .\nx:a x:r .\nx:c x:r x:d .\nx:e x:f\n  oops .\n",
    "f.parquet": parquet_bytes({"h": ["a", None, "c", ""], "r": ["r"] * 4, "t": ["b", "b", "d", "e"]}),
}


@pytest.mark.parametrize("name", SKIPPABLE)
def test_bad_lines_are_skipped_and_counted_when_asked(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(SKIPPABLE[name])
    encoded = read_triples(tmp_path / name, skip_bad_lines=True)
    assert len(encoded.triples) == 2
    assert encoded.report.rows == 2
    assert encoded.report.bad_lines == 2
    assert len(encoded.report.complaints) == 2
    assert "2 bad lines skipped" in str(encoded.report)


@pytest.mark.parametrize("kind", ["nt", "nq"])
def test_a_bad_line_of_triples_costs_no_other(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that breaks off is noticed at the next one, and a CR inside a line counts as a line end."""
    monkeypatch.setattr("gamma_kg.data.rdf.AFTER_DAMAGE_BYTES", 30)  # so that pieces end everywhere
    lines = [f"<x:{i}> <x:r> <x:{i + 1}> ." for i in range(30)]
    broken = {3: "<x:a> <x:r> <x:b>", 4: "<x:a> <x:r>", 9: "bad", 15: "<x:a> <x:r> <x:b> <x:c> <x:d> .", 29: "<x:a>"}
    for number, text in broken.items():
        lines[number] = text
    lines[12] = "\r\r" + lines[12]
    (tmp_path / f"f.{kind}").write_text("\n".join(lines) + "\n", newline="")
    encoded = read_triples(tmp_path / f"f.{kind}", skip_bad_lines=True)
    heads = {encoded.entities[head] for head in encoded.triples[:, 0].tolist()}
    assert heads == {f"x:{i}" for i in range(30) if i not in broken}
    assert encoded.report.bad_lines == len(broken)
    numbers = [int(re.findall(r"line (\d+)", text)[0]) for text in encoded.report.complaints]
    assert numbers == [4, 5, 10, 18, 32][: len(numbers)] and len(numbers) > 2


@pytest.mark.parametrize("kind", ["nt", "nq", "ttl", "n3"])
def test_many_bad_lines_are_not_many_readings(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a bad line the parser starts again, but not with all that is left: that would be hours for a large file."""
    given, parse = [0], rdf.ox.parse

    def counting(content: Any, **options: Any) -> Any:
        if isinstance(content, bytes):
            given[0] += len(content)
            return parse(content, **options)
        read = content.read

        def counted(size: int = -1) -> bytes:
            block = read(size)
            given[0] += len(block)
            return bytes(block)

        content.read = counted
        return parse(content, **options)

    monkeypatch.setattr(rdf.ox, "parse", counting)
    content = b"".join(b"<x:a%d> <x:r> <x:b> .\nbad .\n" % i for i in range(5000))
    (tmp_path / f"f.{kind}").write_bytes(content)
    report = read_triples(tmp_path / f"f.{kind}", skip_bad_lines=True).report
    assert (report.rows, report.bad_lines) == (5000, 5000)
    assert given[0] < 400 * len(content)


def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(gzip.compress(GOOD))
    with (tmp_path / "f").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        encoded = read_triples("-")
    assert list(encoded.entities) == ["Kenya", "Uganda"]
    assert encoded.report.files == ("standard input",)
