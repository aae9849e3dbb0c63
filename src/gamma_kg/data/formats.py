"""Which files a path means, and in which format each one is."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gamma_kg.data.lines import UTF8_BOM, UTF16_BOMS
from gamma_kg.data.options import ReadOptions
from gamma_kg.data.streams import PARQUET_MAGIC, Input, reading_errors
from gamma_kg.errors import DataError, EmptyFileError
from gamma_kg.io.shown import few

PACKED_ENDINGS = (".gz", ".zst", ".zstd")
FORMAT_BY_ENDING = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".txt": "txt",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".nt": "nt",
    ".nq": "nq",
    ".ttl": "ttl",
    ".turtle": "ttl",
    ".trig": "trig",
    ".rdf": "rdf",
    ".owl": "rdf",
    ".xml": "rdf",
    ".jsonld": "jsonld",
    ".n3": "n3",
    ".obo": "obo",
}
# What OWL is also written in. Functional and Manchester syntax start with a prefix or the ontology's name.
OWL_SYNTAXES = {
    "functional": re.compile(rb"(#[^\n]*\n\s*)*(Prefix|Ontology)\s*\("),
    "Manchester": re.compile(rb"(#[^\n]*\n\s*)*(Prefix|Ontology):\s"),
}
# Text that lies beside data in many folders and holds no triples.
COMPANIONS = ("readme", "license", "licence", "changelog", "citation", "_")


def find_files(path: str | Path, options: ReadOptions, notes: list[str]) -> list[Path | None]:
    """The files a path stands for, in order of their names; [None] is standard input.

    A folder stands for one graph: its files are of one format, and of a benchmark's files only the graph is taken.
    What was taken is said in `notes`.
    """
    if str(path) == "-":
        return [None]
    path = Path(path)
    with reading_errors(str(path)):
        os.stat(path)
        if not path.is_dir():
            return [path]
        found: list[Path] = []
        for folder, subfolders, names in os.walk(path):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            found.extend(Path(folder, name) for name in sorted(names) if _is_data(name, options))
    if not found:
        endings = " ".join(FORMAT_BY_ENDING)
        raise DataError(f"{path}: the folder holds no file with a known ending ({endings}, also with .gz or .zst)")
    taken = _graph_of_benchmark(found) or _of_one_format(path, found, options)
    left_out = [file for file in found if file not in taken]
    if len(found) > 1:
        rest = f"; left out {_listed(path, left_out)}" if left_out else ""
        notes.append(f"{path}: took {_listed(path, taken)}{rest}")
    return list(taken)


def _graph_of_benchmark(files: list[Path]) -> list[Path]:
    """Of train, valid and test files in one folder the graph alone: the others are questions about it."""
    by_stem = {file.name.lower().split(".")[0]: file for file in files}
    if len({file.parent for file in files}) > 1 or "test" not in by_stem:
        return []
    graph = by_stem.get("inference") or by_stem.get("train")
    return [graph] if graph is not None else []


def _of_one_format(folder: Path, files: list[Path], options: ReadOptions) -> list[Path]:
    """All files if they are of one format, or those of the format asked for."""
    kinds: dict[str, list[Path]] = {}
    for file in files:
        kinds.setdefault(FORMAT_BY_ENDING.get(_ending(file.name), ""), []).append(file)
    if options.format is not None:
        return kinds.get(options.format, files)
    # Tables are cut in many ways and mean the same.
    tables = [file for file in files if FORMAT_BY_ENDING.get(_ending(file.name)) in ("tsv", "txt")]
    if len(kinds) == 1 or len(tables) == len(files):
        return files
    counted = ", ".join(f"{len(found)} {kind} ({_listed(folder, found)})" for kind, found in kinds.items())
    raise DataError(
        f"{folder}: a folder is read as one graph, but this one has files of several kinds: {counted}; "
        f"name the file, or the format (--format {next(iter(kinds))})"
    )


def _listed(folder: Path, files: list[Path]) -> str:
    return few([str(file.relative_to(folder)) for file in files])


def find_format(opened: Input, path: Path | None, options: ReadOptions) -> str:
    """The format asked for, else the one of the ending, else the one that the first bytes look like."""
    if not opened.start:
        raise EmptyFileError(f"{opened.name}: the file is empty; expected one triple a line (head, relation, tail)")
    if options.format is not None:
        return options.format
    if opened.start.startswith(PARQUET_MAGIC):
        return "parquet"
    by_ending = None if path is None else FORMAT_BY_ENDING.get(_ending(path.name))
    if by_ending in (None, "rdf"):
        _refuse_owl_syntaxes(opened)
    if by_ending == "rdf" and not opened.start.removeprefix(UTF8_BOM).lstrip().startswith((b"<", *UTF16_BOMS)):
        # Many a .owl file is Turtle inside.
        guessed = guess_format(opened.start)
        return guessed if guessed in ("ttl", "trig", "obo", "jsonld") else by_ending
    return by_ending or guess_format(opened.start)


def _refuse_owl_syntaxes(opened: Input) -> None:
    """Fails for the syntaxes of OWL that are no RDF, with the program that turns them into RDF."""
    start = opened.start.removeprefix(UTF8_BOM).lstrip()
    syntax = next((syntax for syntax, pattern in OWL_SYNTAXES.items() if pattern.match(start)), "")
    element = re.search(rb"<([A-Za-z][\w.:-]*)", re.sub(rb"<!--.*?(-->|$)", b"", start, flags=re.DOTALL))
    if start.startswith(b"<") and element is not None and element[1] in (b"Ontology", b"owl:Ontology"):
        syntax = "XML"
    if syntax:
        out = Path(opened.name).with_suffix(".ttl").name
        raise DataError(
            f"{opened.name}: OWL in {syntax} syntax is not RDF; turn it into RDF first, with ROBOT "
            f"(http://robot.obolibrary.org): robot convert --input {Path(opened.name).name} --output {out}"
        )


def guess_format(start: bytes) -> str:
    """The format that the first bytes of a file look like."""
    if start.startswith(UTF16_BOMS):
        start = start.decode("utf-16", "ignore").encode()
    text = start.removeprefix(UTF8_BOM).decode("utf-8", "ignore").lstrip()
    line = text.split("\n", 1)[0].strip()
    if line.startswith("format-version:") or re.match(r"\[(Term|Typedef|Instance)\]$", line):
        return "obo"
    if line.startswith(("{", "[")):
        return "jsonld" if any(word in text for word in ('"@context"', '"@id"', '"@graph"')) else "jsonl"
    if line.startswith(("<?xml", "<rdf:RDF", "<!--", "<!DOCTYPE")):
        return "rdf"
    if line.lower().startswith(("@prefix", "@base", "prefix ", "base ")):
        return "trig" if "{" in text else "ttl"
    if line.startswith(("<", "_:")) and line.endswith("."):
        return "nq"
    if "\t" in line:
        return "tsv"
    return "csv" if any(separator in line for separator in ",;|") else "txt"


def _ending(name: str) -> str:
    stem, ending = os.path.splitext(name.lower())
    return os.path.splitext(stem)[1] if ending in PACKED_ENDINGS else ending


def _is_data(name: str, options: ReadOptions) -> bool:
    if name.startswith(".") or name.lower().startswith(COMPANIONS):
        return False
    return options.format is not None or _ending(name) in FORMAT_BY_ENDING
