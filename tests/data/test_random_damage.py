"""Files damaged at random, in every format: each is read or refused with one line, and nothing else happens."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamma_kg.data.read import read_triples
from gamma_kg.errors import DataError

TURTLE = b'@prefix e: <http://e.org/> .\ne:a e:p e:b, [ e:q "x"@en ] .\ne:a e:p e:c .\n'
SOUND = {
    "f.tsv": b"a\tr\tb\nc\tr\td\n",
    "f.csv": b'head,relation,tail\n"a, x",r,b\nc,r,"d"\n',
    "f.txt": b"a r b\nc r d\n",
    "f.jsonl": b'{"head":"a","relation":"r","tail":"b"}\n{"head":"a","relation":"r","tail":"c"}\n',
    "f.nt": b'<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n_:x <http://e.org/p> "l"^^<http://e.org/t> .\n',
    "f.nq": b"<http://e.org/a> <http://e.org/p> <http://e.org/b> <http://e.org/g> .\n",
    "f.ttl": TURTLE,
    "f.trig": b"@prefix e: <http://e.org/> . e:g { e:a e:p e:b . }",
    "f.rdf": b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    b'<rdf:Description rdf:about="http://e.org/a"><e:p rdf:resource="http://e.org/b"/></rdf:Description></rdf:RDF>',
    "f.jsonld": b'{"@id":"http://e.org/a","http://e.org/p":{"@id":"http://e.org/b"}}',
    "f.tsv.gz": gzip.compress(b"a\tr\tb\n" * 9, mtime=0),
    "f.tsv.zst": zstandard.compress(b"a\tr\tb\n" * 9),
    "facts": TURTLE,
}
PIECES = [
    b'"',
    b"\t",
    b"\n",
    b"\r",
    b"\0",
    b",",
    b"\xff",
    b"<",
    b">",
    b"{",
    b"\xef\xbb\xbf",
    b"\\uD800",
    b":",
    b" .",
    b"_:",
]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    name = draw(st.sampled_from(sorted(SOUND)))
    content = bytearray(SOUND[name])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["insert", "cut", "behead", "change"]))
        if kind == "insert":
            content[at:at] = draw(st.sampled_from(PIECES))
        elif kind == "cut":
            del content[at:]
        elif kind == "behead":
            del content[:at]
        elif at < len(content):
            content[at] = draw(st.integers(0, 255))
    return name, bytes(content)


@pytest.mark.parametrize("options", [{}, {"skip_bad_lines": True, "literals": "as-entities"}])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=damaged())
def test_random_damage_is_read_or_refused_in_one_line(
    tmp_path: Path, options: dict[str, object], file: tuple[str, bytes]
) -> None:
    name, content = file
    path = tmp_path / name
    path.write_bytes(content)
    try:
        encoded = read_triples(path, **options)
    except DataError as error:
        assert "\n" not in str(error) and name in str(error)
        return
    assert encoded.report.rows == len(encoded.triples) > 0
    for vocabulary in (encoded.entities, encoded.relations):
        assert [vocabulary.id(shown) for shown in vocabulary] == list(range(len(vocabulary)))
