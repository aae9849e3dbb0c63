"""Files of a few kilobytes that unpack, expand or nest to more than any machine has."""

from __future__ import annotations

import gzip
from pathlib import Path

from campaign.lines import Line
from campaign.refusing import refused
from campaign.zygote import Zygote


def bombs(line: Line, folder: Path, zygote: Zygote) -> None:
    import zstandard

    zeros, rows = bytes(1 << 20), b"a\tr\tb\n" * 170_000
    with gzip.open(folder / "rows.tsv.gz", "wb") as file:
        for _ in range(600):
            file.write(rows)
    with gzip.open(folder / "zeros.nt.gz", "wb") as file:
        for _ in range(2000):
            file.write(zeros)
    packer = zstandard.ZstdCompressor().compressobj()
    with (folder / "rows.tsv.zst").open("wb") as file:
        for _ in range(600):
            file.write(packer.compress(rows))
        file.write(packer.flush())
    (folder / "twice.tsv.gz").write_bytes(gzip.compress((folder / "zeros.nt.gz").read_bytes()))
    (folder / "laughs.rdf").write_text(RDF % (f'<!ENTITY e0 "x">{LAUGHS}', "&e12;"))
    (folder / "quadratic.rdf").write_text(RDF % (f'<!ENTITY e12 "{"x" * 900}">', "&e12;" * 400_000))
    (folder / "outside.rdf").write_text(RDF % ('<!ENTITY e12 SYSTEM "file:///etc/passwd">', "&e12;"))
    (folder / "deep.jsonl").write_text("[" * 3_000_000)
    (folder / "deep.jsonld").write_text('{"a":' * 1_000_000)
    (folder / "deep.ttl").write_text("<a:a> <a:b> " + "[ <a:b> " * 300_000)
    (folder / "lists.ttl").write_text("<a:a> <a:b> " + "( " * 300_000)
    (folder / "line.tsv").write_bytes(b"a" * (40 << 20))
    (folder / "digits.jsonl").write_text(f'["a","r",{"9" * 3_000_000}]\n')
    for path in sorted(folder.glob("*.*")):
        refused(line, path.name, ["index", path.name, "--out", "g.gamma"], folder, zygote)


LAUGHS = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(12))
RDF = (
    '<!DOCTYPE rdf:RDF [%s]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.org/">'
    '<rdf:Description rdf:about="http://e.org/a"><e:p>%s</e:p></rdf:Description></rdf:RDF>'
)
