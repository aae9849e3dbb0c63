"""Every reader against damaged files: each must be read or refused with one `GammaError`, soon, and in little memory.

`fuzz(reader, count, seed)` damages sound files of one kind and says what went wrong; the test suite does a little of it
and `python benchmarks/reader_faults.py` all of it, each reader in a process of its own with a limit of memory and a
clock that ends it. A damaged file that made a reader fail is kept, so that it can be looked at.
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import io
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import polars as pl
import zstandard

from gamma_kg.data.accepted import read_accepted
from gamma_kg.data.read import read_triples
from gamma_kg.errors import GammaError
from gamma_kg.graph.graph import KnowledgeGraph

MAX_SECONDS = 20.0
MAX_BYTES = 2 << 30
COUNT = 2000

FACTS = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "Köln"), ("a", "s", "x y")]
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
    """One kind of file: sound examples of it (name, content), and what reads one."""

    examples: dict[str, bytes]
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


def readers() -> dict[str, Reader]:
    """Every reader by name."""
    lines = "".join("\t".join(fact) + "\n" for fact in FACTS)
    table = pl.DataFrame(FACTS, schema=["head", "relation", "tail"], orient="row")
    parquet = io.BytesIO()
    table.write_parquet(parquet)
    rdf = {"nt": NT, "nq": NT.replace(" .\n", " <http://e.org/g> .\n"), "ttl": TURTLE, "n3": TURTLE, "owl": OWL}
    rdf |= {"trig": "@prefix e: <http://e.org/> . e:g { e:a e:p e:b . }", "rdf": RDF_XML, "jsonld": JSON_LD}
    found = {
        name: Reader({f"f.{'ttl' if name == 'owl' else name}": text.encode()}, _graph) for name, text in rdf.items()
    }
    found["tsv"] = Reader({"f.tsv": lines.encode()}, _counted_lines)
    found["txt"] = Reader({"f.txt": b"a r b\nc r d\n"}, _counted_lines)
    found["csv"] = Reader(
        {"f.csv": b'head,relation,tail\n"a, x",r,b\nc,r,"d""e"\n', "g.csv": b"a;r;b\nc;r;d\n"}, _graph
    )
    found["jsonl"] = Reader(
        {"f.jsonl": b'{"head":"a","relation":"r","tail":"b"}\n{"head":1,"relation":"r","tail":"c"}\n'}, _graph
    )
    found["parquet"] = Reader({"f.parquet": parquet.getvalue()}, _graph)
    found["obo"] = Reader({"f.obo": OBO.encode()}, _graph)
    found["gzip"] = Reader({"f.tsv.gz": gzip.compress(lines.encode() * 9, mtime=0)}, _graph)
    found["zstd"] = Reader({"f.ttl.zst": zstandard.compress(TURTLE.encode() * 2)}, _graph)
    found["no ending"] = Reader({"facts": TURTLE.encode(), "other": lines.encode(), "more": WIDE.encode()}, _graph)
    found["wide table"] = Reader({"f.csv": WIDE.encode(), "f.tsv": WIDE.replace(",", "\t").encode()}, _wide)
    found["edge list"] = Reader({"f.tsv": b"a\tb\nb\tc\n", "f.jsonl": b'["a","b"]\n["b","c"]\n'}, _edges)
    found["query file"] = Reader(
        {"q.tsv": b"a\tr\t?\n?\tr\tb\n", "q.csv": b'"a",r,\n', "q.jsonl": b'["a","r",null]\n{"head":"a","tail":"b"}\n'},
        _queries,
    )
    found["accepted"] = Reader({"f.csv": b"head_id,relation_id,tail_id,accepted\nx:a,x:p,x:b,yes\n"}, read_accepted)
    found["config"] = Reader({"c.toml": (files("gamma_kg") / "configs" / "ten-minutes.toml").read_bytes()}, _config)
    found["checkpoint"] = Reader({"m.safetensors": _checkpoint()}, _load_checkpoint)
    found["journal"] = Reader({"j.progress": b'{"a": 1}\n{"answers": [[]]}\n{"answers": []}\n'}, _journal)
    store = _store()
    found["store"] = Reader(store, lambda path: _open_store(path, store))
    found["result"] = Reader(
        {"r.json": json.dumps({"format": "gamma-kg/result/1", "mrr": 0.5, "key": "x"}).encode()}, _result
    )
    return found


def fuzz(name: str, count: int, seed: int = 0, kept: Path | None = None) -> Outcome:
    """Damages examples of one reader `count` times. Files that went wrong are kept in the folder `kept`."""
    reader, rng = readers()[name], random.Random(f"{name} {seed}")
    outcome = Outcome(name)
    with tempfile.TemporaryDirectory() as folder:
        for example, content in reader.examples.items():
            # Else every damaged file would be refused, and nothing would have been tried.
            Path(folder, example).write_bytes(content)
            reader.read(Path(folder, example))
        for number in range(count):
            example = rng.choice(sorted(reader.examples))
            content = damaged(reader.examples[example], rng)
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


def _counted_lines(path: Path) -> None:
    """A table without a header: every line that is not blank is a fact or a bad line."""
    _graph(path)
    encoded = read_triples(path, skip_bad_lines=True, format=path.suffix[1:], header=False)
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if content.startswith((b"\xff\xfe", b"\xfe\xff", b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    lines = sum(1 for line in content.split(b"\n") if line.decode().strip())
    assert encoded.report.rows + encoded.report.bad_lines == lines, f"{lines} lines, {encoded.report}"


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


def _checkpoint() -> bytes:
    from gamma_kg.nn.config import GammaConfig
    from gamma_kg.predicting.gamma import Gamma

    with tempfile.TemporaryDirectory() as folder:
        Gamma.from_config(GammaConfig(dim=8, num_layers=1)).save(Path(folder, "m.safetensors"))
        return Path(folder, "m.safetensors").read_bytes()


def _load_checkpoint(path: Path) -> None:
    from gamma_kg.nn.checkpoint import load_checkpoint

    load_checkpoint(path).build()


def _store() -> dict[str, bytes]:
    """The files of a store by their place in it, with @ for /."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "g.gamma")
        KnowledgeGraph.from_triples(FACTS).save(store)
        paths = [path for path in sorted(store.rglob("*")) if path.is_file()]
        return {"@".join(path.relative_to(store).parts): path.read_bytes() for path in paths}


def _open_store(path: Path, sound: dict[str, bytes]) -> None:
    """Opens a store of which one file is damaged, uses it, and lets it verify itself."""
    from gamma_kg.graph.store.facts import verify_store

    with tempfile.TemporaryDirectory() as folder:
        for name, content in sound.items():
            file = Path(folder, *name.split("@"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(path.read_bytes() if name == path.name else content)
        verify_store(folder)
        assert sorted(KnowledgeGraph.open(folder)) == sorted(FACTS), "damage was not seen"


def _journal(path: Path) -> None:
    from gamma_kg.io.journal import Journal

    Journal(path, {"a": 1}).close()


def _result(path: Path) -> None:
    from gamma_kg.evaluation.store import read_result

    read_result(path)


def campaign(count: int, seed: int, names: list[str], kept: Path) -> list[Outcome]:
    """Each reader in a process of its own, so that a crash or a hang of one is a line and not the end."""
    kept.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for name in names:
        command = [
            sys.executable,
            __file__,
            "--only",
            name,
            "--count",
            str(count),
            "--seed",
            str(seed),
            "--kept",
            str(kept),
        ]
        found = subprocess.run([*command, "--inside"], capture_output=True, text=True)
        outcome = Outcome(name)
        try:
            told = json.loads(found.stdout.splitlines()[-1])
            outcome = Outcome(name, told["tried"], told["refused"], told["wrong"])
        except (ValueError, IndexError, KeyError):
            tail = " ".join(found.stderr.strip().splitlines()[:3])
            outcome.wrong.append(f"{name}: the process ended with {found.returncode}: {tail[:400]}")
        outcomes.append(outcome)
        print(outcome, flush=True)
        for complaint in outcome.wrong[:5]:
            print(f"    {complaint}", flush=True)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="damaged files per reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="this reader only; may be repeated")
    parser.add_argument("--kept", type=Path, default=Path("reader-faults"), help="folder for files that went wrong")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.only or list(readers())
    if not options.inside:
        outcomes = campaign(options.count, options.seed, names, options.kept)
        sys.exit(1 if any(outcome.wrong for outcome in outcomes) else 0)
    resource.setrlimit(resource.RLIMIT_DATA, (3 * MAX_BYTES, 3 * MAX_BYTES))
    # No reader runs for as long as that over all its files; Python's own alarm would not end compiled code.
    faulthandler.dump_traceback_later(1800, exit=True)
    outcome = fuzz(names[0], options.count, options.seed, options.kept)
    print(json.dumps({"tried": outcome.tried, "refused": outcome.refused, "wrong": outcome.wrong}))


if __name__ == "__main__":
    main()
