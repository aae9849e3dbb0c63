"""Files as editors, spreadsheets and other tools leave them, paths that lead to no file: read, or refused in a line."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from campaign.jobs import environment
from campaign.lines import Effort, Line
from campaign.refusing import ends_well, runs_well
from campaign.zygote import Zygote

ROWS = [("a", "r", "b"), ("b", "r", "c"), ("c", "q", "a"), ("a", "q", "c")]
TEXT = "".join("\t".join(row) + "\n" for row in ROWS)
LONG = 10**6
# Content of a file, whether it is read (0) or refused (2).
TABLES: dict[str, tuple[bytes, int]] = {
    "bom.tsv": (b"\xef\xbb\xbf" + TEXT.encode(), 0),
    "bom.csv": (b"\xef\xbb\xbfhead,relation,tail\na,r,b\n", 0),
    "only-bom.tsv": (b"\xef\xbb\xbf", 2),
    "crlf.tsv": (TEXT.replace("\n", "\r\n").encode(), 0),
    "cr.tsv": (TEXT.replace("\n", "\r").encode(), 0),
    "three-line-ends.tsv": (b"a\tr\tb\r\nb\tr\tc\nc\tr\td\rd\tr\te\n", 2),
    "utf16.tsv": (TEXT.encode("utf-16"), 0),
    "utf16-no-bom.tsv": (TEXT.encode("utf-16-le"), 2),
    "utf32.tsv": (TEXT.encode("utf-32"), 2),
    "latin.tsv": ("é\tr\tü\n".encode("latin-1"), 2),
    "two-encodings.tsv": ("é\tr\tü\n".encode() + "é\tr\tü\n".encode("latin-1"), 2),
    "nul.tsv": (b"a\0x\tr\tb\n", 2),
    "empty.tsv": (b"", 2),
    "blank.tsv": (b"\n\n\n", 2),
    "long-name.tsv": (b"x" * LONG + b"\tr\tb\nb\tr\tc\n", 0),
    "long-relation.tsv": (b"a\t" + b"x" * LONG + b"\tb\nb\tr\tc\n", 0),
    "column-twice.csv": (b"head,relation,tail,head\na,r,b,c\n", 2),
    "open-quote.csv": (b'head,relation,tail\n"a,r,b\nb,r,c\n', 2),
    "huge-integers.jsonl": (b"".join(b'["%d","r",%d]\n' % (n, n) for n in (2**63, 2**64, 2**70, -(2**63))), 0),
    "nan.jsonl": (b'["a","r",1.5]\n["a","r",NaN]\n', 2),
    "half-character.jsonl": (b'["\\ud800","r","b"]\n', 2),
    "nested.jsonl": (b'{"head":{"id":1},"relation":"r","tail":["b"]}\n', 2),
    "packed-under-another-name.tsv": (gzip.compress(TEXT.encode()), 0),
    "not-packed.tsv.gz": (TEXT.encode(), 2),
    "half.tsv.gz": (gzip.compress(TEXT.encode())[:-6], 2),
    "text.parquet": (TEXT.encode(), 2),
}
PLACES = {
    "missing.tsv": 2, "": 2, "no-folder/x.tsv": 2, "facts.tsv/x": 2, "x" * 5000 + ".tsv": 2, "x" * 300 + ".tsv": 2,
    "folder.tsv": 2, "folder.gamma": 2, "dangling.tsv": 2, "loop.tsv": 2, "link.tsv": 0, "socket.tsv": 2,
    "two\nlines.tsv": 2, "/dev/null": 2, "/dev/zero": 2, "odd\udcff.tsv": 0,
}  # fmt: skip
PIPES = ("pipe.jsonl", "pipe.svg")


def lay_out_odd_files(place: Path) -> None:
    (place / "folder.tsv").mkdir()
    (place / "folder.gamma").mkdir()
    (place / "folder.svg").mkdir()
    (place / "dangling.tsv").symlink_to("nowhere.tsv")
    (place / "loop.tsv").symlink_to("loop.tsv")
    (place / "link.tsv").symlink_to("facts.tsv")
    os.link(place / "facts.tsv", place / "hard.tsv")
    for name in PIPES:
        os.mkfifo(place / name)
    shutil.copy(place / "facts.tsv", place / "odd\udcff.tsv")


def odd_files(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Tables as editors, spreadsheets and other tools leave them; paths that lead to no file."""
    lay_out_odd_files(place)
    with socket.socket(socket.AF_UNIX) as listening:
        # A path of a socket may have 107 bytes.
        here = os.getcwd()
        os.chdir(place)
        listening.bind("socket.tsv")
        os.chdir(here)
        step = 5 if effort.is_short else 1
        for name, (content, wanted) in list(TABLES.items())[::step]:
            (place / name).write_bytes(content)
            runs_well(line, name, ["index", name, "--out", f"{name}.gamma"], place, zygote, (wanted,))
        for name, wanted in list(_parquet(place).items())[::step]:
            runs_well(line, name, ["index", name, "--out", f"{name}.gamma"], place, zygote, (wanted,))
        for number, (name, wanted) in enumerate(list(PLACES.items())[::step]):
            words = ["index", name, "--out", f"g{number}.gamma"]
            runs_well(line, repr(name[:40]), words, place, zygote, (wanted,))
    (place / "later.tsv").unlink(missing_ok=True)
    os.mkfifo(place / "later.tsv")
    process = zygote.start(["index", "later.tsv", "--out", "later.gamma"], place, environment(place))
    (place / "later.tsv").write_text(TEXT)  # as `gamma index <(zcat f.gz)` has it
    _, said = process.communicate()
    ends_well(line, "a named pipe that is written to", process.returncode, said, (0,))
    (place / "long-name.tsv").write_bytes(TABLES["long-name.tsv"][0])
    runs_well(line, "a name of 10^6 characters", ["describe", "long-name.tsv", "--no-time"], place, zygote, (0,))


def _parquet(place: Path) -> dict[str, int]:
    """Parquet files of odd columns, made by a process of its own: polars must not be used before a fork."""
    program = f"""
import datetime, polars as pl
r, t = ["r", "r"], ["b", "c"]
for name, head, tail in (
    ("lists", [["a"], ["b"]], t), ("structs", [{{"x": "a"}}, {{"x": "b"}}], t), ("bytes", [b"a\\xff", b"b"], t),
    ("holes", ["a", None], t), ("nan", ["a", "b"], [1.5, float("nan")]), ("integers", [2**63 - 1, 1], [-(2**63), 3]),
    ("dates", [datetime.date(2020, 1, 1)] * 2, t),
):
    pl.DataFrame({{"head": head, "relation": r, "tail": tail}}).write_parquet({str(place)!r} + f"/{{name}}.parquet")
pl.DataFrame({{"head": ["a"], "relation": ["r"]}}).write_parquet({str(place)!r} + "/two-columns.parquet")
pl.DataFrame({{"head": ["a"], "relation": ["r"], "tail": ["b"], "x": [[{{"y": 1}}]]}}).write_parquet(
    {str(place)!r} + "/nested-beside.parquet")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    wanted = dict.fromkeys(("lists", "structs", "bytes", "holes", "nan", "two-columns"), 2)
    wanted |= dict.fromkeys(("integers", "dates", "nested-beside"), 0)
    return {f"{name}.parquet": code for name, code in wanted.items()}
