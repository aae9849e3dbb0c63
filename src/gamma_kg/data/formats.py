"""Which files a path means, and in which format each one is."""

from __future__ import annotations

import os
from pathlib import Path

from gamma_kg.data.options import ReadOptions
from gamma_kg.data.streams import PARQUET_MAGIC, UTF8_BOM, UTF16_BOMS, Input, reading_errors
from gamma_kg.errors import DataError

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
}
# Text that lies beside data in many folders and holds no triples.
COMPANIONS = ("readme", "license", "licence", "changelog", "citation", "_")


def find_files(path: str | Path, options: ReadOptions) -> list[Path | None]:
    """The files a path stands for, in order of their names; [None] is standard input."""
    if str(path) == "-":
        return [None]
    path = Path(path)
    with reading_errors(str(path)):
        os.stat(path)
        if not path.is_dir():
            return [path]
        found: list[Path | None] = []
        for folder, subfolders, names in os.walk(path):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            found.extend(Path(folder, name) for name in sorted(names) if _is_data(name, options))
    if not found:
        endings = " ".join(FORMAT_BY_ENDING)
        raise DataError(f"{path}: the folder holds no file with a known ending ({endings}, also with .gz or .zst)")
    return found


def find_format(opened: Input, path: Path | None, options: ReadOptions) -> str:
    """The format asked for, else the one of the ending, else the one that the first bytes look like."""
    if not opened.start:
        raise DataError(f"{opened.name}: the file is empty; expected one triple a line (head, relation, tail)")
    if options.format is not None:
        return options.format
    if opened.start.startswith(PARQUET_MAGIC):
        return "parquet"
    by_ending = None if path is None else FORMAT_BY_ENDING.get(_ending(path.name))
    return by_ending or guess_format(opened.start)


def guess_format(start: bytes) -> str:
    """The format that the first bytes of a file look like."""
    if start.startswith(UTF16_BOMS):
        start = start.decode("utf-16", "ignore").encode()
    text = start.removeprefix(UTF8_BOM).decode("utf-8", "ignore").lstrip()
    line = text.split("\n", 1)[0].strip()
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
