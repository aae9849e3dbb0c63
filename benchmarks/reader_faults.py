"""Every reader against damaged files: each must be read or refused with one `GammaError`, soon, and in little memory.

`fuzz(reader, count, seed)` damages sound files of one kind and says what went wrong; the test suite does a little of it
and `python benchmarks/reader_faults.py` all of it, each reader in a process of its own with a limit of memory and a
clock that ends it. A damaged file that made a reader fail is kept, so that it can be looked at.
"""

from __future__ import annotations

import argparse
import csv
import faulthandler
import gzip
import importlib
import io
import json
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import polars as pl
import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign.own_files import FACTS, OWN_FILES

from gamma_kg.data.accepted import read_accepted
from gamma_kg.data.read import read_triples
from gamma_kg.errors import GammaError
from gamma_kg.graph.graph import KnowledgeGraph

MAX_SECONDS = 20.0
MAX_BYTES = 2 << 30
COUNT = 2000

NT = '<http://e.org/a> <http://e.org/p> <http://e.org/b> .\n_:x <http://e.org/p> "l\\u00fc\\n"@en .\n' * 3
TURTLE = '@prefix e: <http://e.org/> .\ne:a e:p e:b, [ e:q "x"@en ] ; a e:T .\ne:l e:p (e:a e:b) .\n'
OWL = (
    "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
    "@prefix e: <http://e.org/> . e:A a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty e:p ; "
    'owl:someValuesFrom e:B ] ; rdfs:label "A" . e:B a owl:Class ; owl:disjointWith e:A .'
)
RDF_XML = (
    '<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY e "http://e.org/">]>\n'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    '<rdf:Description rdf:about="&e;a"><e:p rdf:resource="http://e.org/b"/><e:q xml:lang="en">x</e:q>'
    "</rdf:Description></rdf:RDF>"
)
JSON_LD = '{"@context":{"p":{"@id":"http://e.org/p","@type":"@id"}},"@graph":[{"@id":"http://e.org/a","p":["x:b"]}]}'
OBO = 'format-version: 1.2\n\n[Term]\nid: GO:1\nname: a\nsynonym: "b" EXACT []\nis_a: GO:2 ! b\nrelationship: p GO:3\n'
WIDE = "ident,country,hub\nNBO,KE,\nMBA,KE,NBO\nEBB,UG,NBO\n"


@dataclass(frozen=True)
class Reader:
    """One kind of file: what makes sound examples of it (name → content), and what reads one."""

    make: Callable[[], dict[str, bytes]]
    read: Callable[[Path], object]


@dataclass
class Outcome:
    """What became of the damaged files."""

    reader: str
    tried: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.reader:<14} {self.tried:>6,} tried  {self.refused:>6,} refused  {len(self.wrong):>4,} wrong"


def _facts_lines() -> bytes:
    return "".join("\t".join(fact) + "\n" for fact in FACTS).encode()


def _parquet() -> bytes:
    content = io.BytesIO()
    pl.DataFrame(FACTS, schema=["head", "relation", "tail"], orient="row").write_parquet(content)
    return content.getvalue()


def readers() -> dict[str, Reader]:
    """Every reader by name. Nothing is made yet: a process that forks must not have used polars."""
    rdf = {"nt": NT, "nq": NT.replace(" .\n", " <http://e.org/g> .\n"), "ttl": TURTLE, "n3": TURTLE, "owl": OWL}
    rdf |= {"trig": "@prefix e: <http://e.org/> . e:g { e:a e:p e:b . }", "rdf": RDF_XML, "jsonld": JSON_LD}
    found = {
        name: _of(_graph, **{f"f.{'ttl' if name == 'owl' else name}": text.encode()}) for name, text in rdf.items()
    }
    for name, graph in (("nt", ""), ("nq", " <x:g>")):
        facts = "".join(f"<x:{head}> <x:{relation}> <x:{head}{relation}>{graph} .\n" for head, relation, _ in FACTS)
        found[name] = _of(_counted, **{f"f.{name}": rdf[name].encode(), f"g.{name}": facts.encode()})
    lines = _facts_lines()
    found["tsv"] = _of(_counted, **{"f.tsv": lines})
    found["txt"] = _of(_counted, **{"f.txt": b"a r b\nc r d\n"})
    found["csv"] = _of(
        _counted, **{"f.csv": b'head,relation,tail\n"a, x",r,b\nc,r,"d""e"\n', "g.csv": b"a;r;b\nc;r;d\n"}
    )
    objects = b'{"head":"a","relation":"r","tail":"b"}\n{"head":1,"relation":"r","tail":"c"}\n'
    found["jsonl"] = _of(_counted, **{"f.jsonl": objects})
    found["parquet"] = Reader(lambda: {"f.parquet": _parquet()}, _graph)
    found["obo"] = _of(_graph, **{"f.obo": OBO.encode()})
    found["gzip"] = _of(_graph, **{"f.tsv.gz": gzip.compress(lines * 9, mtime=0)})
    found["zstd"] = _of(_graph, **{"f.ttl.zst": zstandard.compress(TURTLE.encode() * 2)})
    found["no ending"] = _of(_graph, facts=TURTLE.encode(), other=lines, more=WIDE.encode())
    found["wide table"] = _of(_wide, **{"f.csv": WIDE.encode(), "f.tsv": WIDE.replace(",", "\t").encode()})
    found["edge list"] = _of(_edges, **{"f.tsv": b"a\tb\nb\tc\n", "f.jsonl": b'["a","b"]\n["b","c"]\n'})
    rows = b'["a","r",null]\n{"head":"a","tail":"b"}\n'
    found["query file"] = _of(_queries, **{"q.tsv": b"a\tr\t?\n?\tr\tb\n", "q.csv": b'"a",r,\n', "q.jsonl": rows})
    found["accepted"] = _of(read_accepted, **{"f.csv": b"head_id,relation_id,tail_id,accepted\nx:a,x:p,x:b,yes\n"})
    config = (files("gamma_kg") / "configs" / "ten-minutes.toml").read_bytes()
    found["config"] = _of(_config, **{"c.toml": config})
    return found | {name: Reader(*both) for name, both in OWN_FILES.items()}


def _of(read: Callable[[Path], object], **examples: bytes) -> Reader:
    return Reader(lambda: examples, read)


def fuzz(name: str, count: int, seed: int = 0, kept: Path | None = None) -> Outcome:
    """Damages examples of one reader `count` times. Files that went wrong are kept in the folder `kept`."""
    reader, rng = readers()[name], random.Random(f"{name} {seed}")
    outcome, examples = Outcome(name), reader.make()
    with tempfile.TemporaryDirectory() as folder:
        for example, content in examples.items():
            # Else every damaged file would be refused, and nothing would have been tried.
            Path(folder, example).write_bytes(content)
            reader.read(Path(folder, example))
        for number in range(count):
            example = rng.choice(sorted(examples))
            content = damaged(examples[example], rng)
            path = Path(folder, example)
            path.write_bytes(content)
            if kept is not None:
                # Written before it is read: should the process die, the last one is the culprit.
                (kept / f"last-{example}").write_bytes(content)
            complaint = _try(reader, path, outcome)
            outcome.tried += 1
            if complaint:
                outcome.wrong.append(f"{name} {seed} #{number} ({example}): {complaint}")
                if kept is not None:
                    (kept / f"{name.replace(' ', '-')}-{seed}-{number}-{example}").write_bytes(content)
    return outcome


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four mutations."""
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        MUTATIONS[rng.randrange(len(MUTATIONS))](found, rng)
    return bytes(found)


def _flip(content: bytearray, rng: random.Random) -> None:
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _change(content: bytearray, rng: random.Random) -> None:
    if content:
        content[rng.randrange(len(content))] = rng.randrange(256)


def _insert(content: bytearray, rng: random.Random) -> None:
    at = rng.randint(0, len(content))
    content[at:at] = rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 50, 2000))


def _cut(content: bytearray, rng: random.Random) -> None:
    del content[rng.randint(0, len(content)) :]


def _behead(content: bytearray, rng: random.Random) -> None:
    del content[: rng.randint(0, len(content))]


def _remove(content: bytearray, rng: random.Random) -> None:
    start = rng.randint(0, len(content))
    del content[start : start + rng.randint(1, 20)]


def _repeat(content: bytearray, rng: random.Random) -> None:
    start = rng.randint(0, len(content))
    part = content[start : start + rng.randint(1, 40)]
    content[start:start] = part * rng.choice((1, 2, 30))


def _swap(content: bytearray, rng: random.Random) -> None:
    start, end = sorted((rng.randint(0, len(content)), rng.randint(0, len(content))))
    content[:] = content[:start] + content[end:] + content[start:end]


def _number(content: bytearray, rng: random.Random) -> None:
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if digits:
        at = rng.choice(digits)
        content[at : at + 1] = rng.choice((b"-1", b"0", b"99999999999999999999", b"1e999", b"NaN", b"2147483648"))


MUTATIONS = (_flip, _flip, _change, _insert, _insert, _cut, _behead, _remove, _repeat, _swap, _number)
PIECES = (
    *(bytes([byte]) for byte in b"\"'\t\n\r\0,;|<>{}[]()\\&#:.?@=_ \xff\xc3\x80"),
    *(
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\\uD800",
        b"\\U0010FFFF",
        b"\xed\xa0\x80",
        b"\xe2\x80\xa8",
        b"\xe2\x80\xae",
        b"\x1b[2J",
    ),
    *(
        b"_:",
        b" .",
        b"<!--",
        b"&e;",
        b"<!ENTITY x 'y'>",
        b'"@id":',
        b"null",
        b"true",
        b'"""',
        b"@prefix",
        b"=cmd()",
        b"../../x",
    ),
    *(b"PAR1", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"[Term]", b"is_a: ", b"<script>"),
)


def _try(reader: Reader, path: Path, outcome: Outcome) -> str | None:
    """What went wrong, if anything did."""
    start, before = time.monotonic(), _peak_bytes()
    try:
        reader.read(path)
    except GammaError as error:
        outcome.refused += 1
        if "\n" in str(error).strip():
            return f"an error of several lines: {str(error)[:200]!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return f"a panic: {str(error)[:200]}"
    if time.monotonic() - start > MAX_SECONDS:
        return f"took {time.monotonic() - start:.0f} s"
    if _peak_bytes() - before > MAX_BYTES:
        return f"took {(_peak_bytes() - before) >> 20:,} MB"
    return None


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _graph(path: Path) -> None:
    """Reads a graph as it is, and again skipping bad lines: what was read must be of one piece."""
    for options in ({}, {"skip_bad_lines": True, "literals": "as-entities"}):
        try:
            encoded = read_triples(path, **options)  # type: ignore[arg-type]
        except GammaError:
            if options:
                raise
            continue
        assert encoded.report.rows == len(encoded.triples) > 0
        KnowledgeGraph(encoded.triples, encoded.entities, encoded.relations)
        for names in (encoded.entities, encoded.relations):
            for i in range(len(names)):
                assert names.id(names[i]) == i, names[i]
                names.identifier(i).encode("utf-8")


def _counted(path: Path) -> None:
    """One fact a line: every line that is not blank is a fact or a bad line, and nothing is dropped without a word."""
    _graph(path)
    kind = path.suffix[1:]
    is_table = kind in ("tsv", "txt", "csv")
    report = read_triples(path, skip_bad_lines=True, format=kind, header=False if is_table else None).report
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if content.startswith((b"\xff\xfe", b"\xfe\xff", b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return
    if b"\n" not in content or kind in ("nt", "nq"):
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = [line for line in content.decode().split("\n") if line.strip()]
    told = report.rows + report.bad_lines
    if kind == "csv" and b'"' in content:
        # A quoted cell may go over several lines, and which lines depends on what stands between cells.
        least = min(_rows(content.decode(), delimiter) for delimiter in ",;")
        assert told >= least, f"{least} rows, {report}"
        return
    if kind in ("nt", "nq") and any(mark in content for mark in (b"_:", b'"', b"#", b"<<", b"w3.org")):
        return  # comments, and what is said of facts or told of things instead of being a fact
    assert told == len(lines), f"{len(lines)} lines, {report}"


def _rows(text: str, delimiter: str) -> int:
    return sum(1 for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(map(str.strip, row)))


def _wide(path: Path) -> None:
    read_triples(path, id_column=0, skip_bad_lines=True)
    read_triples(path, id_column="ident", literals="as-entities")


def _edges(path: Path) -> None:
    read_triples(path, edge_relation="linked", null_values=["a"], skip_bad_lines=True)
    read_triples(path, edge_relation="linked")


def _queries(path: Path) -> None:
    from gamma_kg.predicting.query_files import read_queries

    read_queries(path, [])
    read_queries(path)


def _config(path: Path) -> None:
    from gamma_kg.training.config import read_config

    read_config(path)


def campaign(count: int, seed: int, names: list[str], kept: Path) -> Iterator[Outcome]:
    """Each reader in a process of its own, so that a crash or a hang of one is a line and not the end.

    The processes are forked: importing takes longer than most readers need for 2,000 files.
    """
    kept.mkdir(parents=True, exist_ok=True)
    for name in IMPORTS:
        importlib.import_module(name)
    for name in names:
        yield _apart(name, count, seed, kept)


def _apart(name: str, count: int, seed: int, kept: Path) -> Outcome:
    """What `fuzz` says in a forked process with a limit of memory and of time."""
    with tempfile.TemporaryFile("w+") as told:
        child = os.fork()
        if child == 0:
            try:
                resource.setrlimit(resource.RLIMIT_DATA, (3 * MAX_BYTES, 3 * MAX_BYTES))
                # No reader runs for as long as that over all its files; Python's own alarm would not end compiled code.
                faulthandler.dump_traceback_later(1800, exit=True)
                json.dump(vars(fuzz(name, count, seed, kept)), told)
                told.flush()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told.seek(0)
        try:
            return Outcome(**json.load(told))
        except ValueError:
            return Outcome(name, wrong=[f"{name}: the process ended with {code}; its last file is in {kept}"])


# What readers need: imported before the fork. Polars may be imported, but not used.
IMPORTS = (
    "torch", "polars", "rdflib", "gamma_kg.data.read", "gamma_kg.predicting.gamma", "gamma_kg.predicting.query_files",
    "gamma_kg.training.config", "gamma_kg.training.curve", "gamma_kg.training.run_folder", "gamma_kg.report.render",
    "gamma_kg.report.runs", "gamma_kg.logic.query_sets", "gamma_kg.logic.sparql", "gamma_kg.serve.review",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="damaged files per reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="this reader only; may be repeated")
    parser.add_argument("--kept", type=Path, default=Path("reader-faults"), help="folder for files that went wrong")
    parser.add_argument("--json", action="store_true", help="a JSON object for each reader")
    options = parser.parse_args()
    is_wrong = False
    for outcome in campaign(options.count, options.seed, options.only or list(readers()), options.kept):
        is_wrong |= bool(outcome.wrong)
        if options.json:
            print(json.dumps(vars(outcome)), flush=True)
        else:
            print("\n    ".join([str(outcome), *outcome.wrong[:5]]), flush=True)
    sys.exit(1 if is_wrong else 0)


if __name__ == "__main__":
    main()
