"""What a careless user does: files that are something else, results over inputs, streams that are closed, no home.

Each try ends with exit code 0 or 2, as the table says, without a traceback; what is read stays as it was.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from campaign.jobs import GAMMA, JOBS, Job, environment, half_files, orphans, prepare
from campaign.killing import commands, different
from campaign.lines import Effort, Line
from campaign.sharing import LARGE, _calm, _free, mounted
from campaign.surroundings import FAKETIME
from campaign.zygote import Zygote

ROWS = [("a", "r", "b"), ("b", "r", "c"), ("c", "q", "a"), ("a", "q", "c")]
TEXT = "".join("\t".join(row) + "\n" for row in ROWS)
MODEL = ("--model", "small.safetensors")
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
RESULTS = (
    "facts.tsv", "queries.tsv", "link.tsv", "hard.tsv", "folder.tsv", "pipe.jsonl", "/dev/full", "", ".", "..",
    "x" * 300 + ".jsonl", "new/deep/x.jsonl", "facts.tsv/x.jsonl", "/proc/x.jsonl", "loop.tsv", "a.xyz",
    "odd\udcff.tsv", "small.safetensors", "run.toml",
)  # fmt: skip
PIPES = ("pipe.jsonl", "pipe.svg")
FOLDERS = ("facts.tsv", "", ".", "x" * 300, "/dev/full", "loop.tsv", "facts.tsv/x")
ASKING = ("predict", "facts.tsv", "--queries", "queries.tsv", *MODEL)
# Commands that write, and where to.
WRITERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "predict": (ASKING, RESULTS),
    "complete": (("complete", "facts.tsv", "--top", "3", *MODEL), RESULTS[:9]),
    "explain": (
        ("explain", "facts.tsv", "--head", "a", "--relation", "r", "--tail", "b", *MODEL),
        ("facts.tsv", "folder.svg", "pipe.svg", "new/deep/x.svg"),
    ),
    "index": (("index", "facts.tsv"), FOLDERS),
    "evaluate": (("evaluate", "datasets/mine", "--limit", "2", *MODEL), FOLDERS),
    "pretrain": (("pretrain", "run.toml", "--set", "steps=2"), FOLDERS),
    "average": (("average", "small.safetensors", "small.safetensors"), ("small.safetensors", "folder.tsv", "")),
}


def careless_names(effort: Effort) -> list[str]:
    return [f"careless: {name}" for name in ATTEMPTS if not (effort.is_short and name in STARTING)]


def careless(folder: Path, effort: Effort) -> Iterator[Line]:
    with commands() as zygote:
        for name, attempt in ATTEMPTS.items():
            line = Line(f"careless: {name}")
            if effort.wants(line.name):
                place = folder / str(len(list(folder.iterdir())))
                prepare(place)
                (place / "facts.tsv").write_text(TEXT)
                (place / "queries.tsv").write_text("a\tr\t?\n")
                attempt(line, place, zygote, effort)
                yield line


def _look(line: Line, what: str, process: object, said: str, wanted: tuple[int, ...]) -> None:
    code = process.returncode  # type: ignore[attr-defined]
    line.expect(code in wanted, f"{what}: exit code {code}: {said[-300:]!r}")
    told = any(text.startswith("gamma: ") for text in said.splitlines())
    line.expect("Traceback" not in said and (code != 2 or told), f"{what}: said {said[-400:]!r}")


def _run(line: Line, what: str, words: list[str], place: Path, zygote: Zygote, wanted: tuple[int, ...]) -> None:
    process = zygote.start(words, place, environment(place))
    try:
        _, said = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        line.expect(False, f"{what}: no end")
        return
    _look(line, what, process, said, wanted)


def _odd_files(place: Path) -> None:
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


def _read(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Tables as editors, spreadsheets and other tools leave them; paths that lead to no file."""
    _odd_files(place)
    with socket.socket(socket.AF_UNIX) as listening:
        # A path of a socket may have 107 bytes.
        here = os.getcwd()
        os.chdir(place)
        listening.bind("socket.tsv")
        os.chdir(here)
        step = 5 if effort.is_short else 1
        for name, (content, wanted) in list(TABLES.items())[::step]:
            (place / name).write_bytes(content)
            _run(line, name, ["index", name, "--out", f"{name}.gamma"], place, zygote, (wanted,))
        for name, wanted in _parquet(place).items():
            _run(line, name, ["index", name, "--out", f"{name}.gamma"], place, zygote, (wanted,))
        for number, (name, wanted) in enumerate(list(PLACES.items())[::step]):
            words = ["index", name, "--out", f"g{number}.gamma"]
            _run(line, repr(name[:40]), words, place, zygote, (wanted,))
    (place / "later.tsv").unlink(missing_ok=True)
    os.mkfifo(place / "later.tsv")
    process = zygote.start(["index", "later.tsv", "--out", "later.gamma"], place, environment(place))
    (place / "later.tsv").write_text(TEXT)  # as `gamma index <(zcat f.gz)` has it
    _, said = process.communicate()
    _look(line, "a named pipe that is written to", process, said, (0,))
    (place / "long-name.tsv").write_bytes(TABLES["long-name.tsv"][0])
    _run(line, "a name of 10^6 characters", ["describe", "long-name.tsv", "--no-time"], place, zygote, (0,))


def _parquet(place: Path) -> dict[str, int]:
    """Parquet files of odd columns, made by a process of its own: polars must not be used before a fork."""
    program = f"""
import datetime, polars as pl
r, t = ["r", "r"], ["b", "c"]
for name, head, tail in (
    ("lists", [["a"], ["b"]], t), ("structs", [{{"x": "a"}}, {{"x": "b"}}], t), ("bytes", [b"a", b"b"], t),
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


def _write(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Results where an input is, a folder, a pipe, nothing at all: what was there is there, and is what it was."""
    _odd_files(place)
    pristine = place.with_name(f"{place.name}-pristine")
    kept = ("facts.tsv", "queries.tsv", "small.safetensors", "run.toml")
    before = {name: (place / name).read_bytes() for name in kept}
    shutil.copytree(place, pristine, symlinks=True, copy_function=_copied)
    for command, (words, results) in WRITERS.items():
        for result in results[:: 4 if effort.is_short else 1]:
            here = place.with_name(f"{place.name}-{command}")
            shutil.copytree(pristine, here, symlinks=True, copy_function=_copied)
            (here / "hard.tsv").unlink(missing_ok=True)
            os.link(here / "facts.tsv", here / "hard.tsv")
            what = f"{command} --out {result[:40]!r}"
            _run(line, what, [*words, "--out", result], here, zygote, (0, 2))
            changed = [name for name in kept if (here / name).read_bytes() != before[name]]
            line.expect(not changed, f"{what}: wrote over {changed}")
            are_pipes = all(stat.S_ISFIFO((here / name).stat().st_mode) for name in PIPES)
            line.expect(are_pipes, f"{what}: took the place of a pipe")
            shutil.rmtree(here)
    shutil.rmtree(pristine)


def _copied(source: str, target: str) -> None:
    if stat.S_ISFIFO(os.lstat(source).st_mode):
        os.mkfifo(target)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _fresh(line: Line, what: str, script: str, place: Path, wanted: tuple[int, ...], **changes: str | None) -> None:
    """A fresh start of Python by a shell, in an environment with these changes; None takes a variable away."""
    variables = environment(place) | {name: value for name, value in changes.items() if value is not None}
    for name in (name for name, value in changes.items() if value is None):
        variables.pop(name, None)
    gamma = " ".join(GAMMA)
    done = subprocess.run(
        ["bash", "-c", script.replace("GAMMA", gamma)], cwd=place, env=variables, capture_output=True, timeout=300
    )
    _look(line, what, done, done.stderr.decode(errors="replace"), wanted)


def _streams(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Output that nobody reads, that is full, or closed: results are told of or lost with a word, never quietly."""
    asking = " ".join(ASKING)
    _fresh(line, "| head", f"set -o pipefail; GAMMA {asking} | head -1", place, (0, 1, 141))
    _fresh(line, "a full output", f"GAMMA {asking} > /dev/full", place, (2,))
    _fresh(line, "a closed output", f"GAMMA {asking} >&-", place, (2,))
    for name, streams in (("error", "2>&-"), ("streams", "<&- >&- 2>&-")):
        _fresh(line, f"closed {name}", f"GAMMA {asking} --out {name}.jsonl {streams}", place, (0,))
        line.expect((place / f"{name}.jsonl").exists(), f"closed {name}: no result")
    (place / "unicode.tsv").write_text("é→\tr\tü\nü\tr\té→\n")
    for encoding in ("latin-1", "ascii"):
        words = "GAMMA describe unicode.tsv --no-time && GAMMA predict unicode.tsv --head ü --relation r --json"
        _fresh(line, f"output in {encoding}", words, place, (0,), PYTHONIOENCODING=encoding)


def _homes(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """No home, one that is none, no folder for what is temporary, a plain locale, a clock before 1980."""
    words = f"GAMMA complete facts.tsv --top 3 {' '.join(MODEL)} --out %s.jsonl"
    none: dict[str, str | None] = {"XDG_CACHE_HOME": None, "GAMMA_CACHE": None}
    for name, home in (("none", None), ("nowhere", "/nonexistent"), ("a file", "/etc/passwd"), ("read-only", "/proc")):
        _fresh(line, f"a home that is {name}", words % name.replace(" ", ""), place, (0,), HOME=home, **none)
    _fresh(line, "no folder for temporary files", words % "tmp", place, (0, 2), TMPDIR="/nonexistent")
    _fresh(line, "locale C", words % "c", place, (0,), LC_ALL="C", LANG=None, PYTHONUTF8="0")
    _fresh(
        line, "locale C, not mended by Python", words % "c2", place, (0,), LC_ALL="C", PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )  # fmt: skip
    if Path(FAKETIME).exists():
        old = {"LD_PRELOAD": FAKETIME, "FAKETIME": "1975-01-01 00:00:00"}
        _fresh(line, "a clock before 1980", words % "old", place, (0,), **old)
        _fresh(line, "a clock before 1980, index", "GAMMA index facts.tsv --out old.gamma", place, (0,), **old)
    found = {path.read_bytes() for path in place.glob("*.jsonl")}
    line.expect(len(found) == 1, f"{len(found)} different results")


def _full_cache(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """What is kept for later has no room: the answer comes all the same, or one line says why not."""
    cache = place / "cache"
    cache.mkdir(exist_ok=True)
    words = ["complete", "demo", "--top", "3", "--relation", "borders"]
    try:
        with mounted(cache, ["-o", LARGE]):
            (cache / "filler").write_bytes(b"x" * _free(cache))
            _run(line, "no room for what is kept", [*words, "--out", "full.jsonl"], place, zygote, (0, 2))
            (cache / "filler").unlink()
            _run(line, "with room again", [*words, "--out", "room.jsonl"], place, zygote, (0,))
            line.expect(not half_files(cache), f"left half a file: {half_files(cache)}")
            if (place / "full.jsonl").exists():
                same = (place / "full.jsonl").read_bytes() == (place / "room.jsonl").read_bytes()
                line.expect(same, "another result without room")
    except PermissionError as refused:
        line.skipped = str(refused)


def _forbidden(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Files that may not be read, folders that may not be written, for a user who is not root."""
    if os.getuid() != 0:
        line.skipped = "only root can become another user"
        return
    (place / "secret.tsv").write_text(TEXT)
    (place / "secret.tsv").chmod(0)
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "facts.tsv").write_text(TEXT)
    for path in (*place.parents, place):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o055)
    cases = {
        "a file": ["index", "secret.tsv", "--out", "/tmp/never.gamma"],
        "a file in a folder": ["index", "closed/facts.tsv", "--out", "/tmp/never.gamma"],
        "a folder": ["index", "closed", "--out", "/tmp/never.gamma"],
        "a place for a store": ["index", "facts.tsv", "--out", "g.gamma"],
        "a place for results": [*ASKING, "--out", "a.jsonl"],
        "a place in a closed folder": [*ASKING, "--out", "closed/a.jsonl"],
        "a place for a run": ["pretrain", "run.toml", "--out", "run"],
        "a place for an evaluation": [*WRITERS["evaluate"][0], "--out", "results"],
    }
    for name, words in cases.items():
        process = zygote.start(words, place, environment(place) | {"GAMMA_FAULTS_USER": "65534"})
        _, said = process.communicate(timeout=120)
        _look(line, f"no right to {name}", process, said, (2,))
        line.expect("ermission" in said, f"no right to {name}: the reason is not told: {said[-300:]!r}")


def _twice(line: Line, place: Path, zygote: Zygote, effort: Effort) -> None:
    """Ctrl-C, and again at once because it did not end at once: the same as one, and the command goes on."""
    shutil.copy(place / "datasets" / "fb15k237" / "train.txt", place / "facts.tsv")
    start, rng = place.with_name(f"{place.name}-start"), random.Random(f"twice {effort.seed}")
    shutil.copytree(place, start)
    chosen = [job for job in JOBS if job.name in ("evaluate", "predict --queries", "complete", "index", "pretrain")]
    shutil.copy(start / "facts.tsv", start / "queries.tsv")
    (start / "queries.tsv").write_text("".join(f"p{i % 60}\tparent of\t?\n" for i in range(300)))
    for job in chosen[:: 2 if effort.is_short else 1]:
        began = time.monotonic()
        expected = _calm(job, start, place, zygote)
        whole = time.monotonic() - began
        for number in range(max(1, effort.kills // 5)):
            _stop_twice(line, job, start, place / f"twice-{job.short_name}{number}", expected, rng, whole, zygote)


def _stop_twice(
    line: Line, job: Job, start: Path, here: Path, expected: dict[str, bytes], rng: random.Random, whole: float,
    zygote: Zygote,
) -> None:  # fmt: skip
    shutil.copytree(start, here)
    process = job.start(here, zygote)
    time.sleep(rng.uniform(0.1, whole))
    for _ in range(2):
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
            time.sleep(rng.choice((0.0, 0.001, 0.02, 0.2)))
    _, said = process.communicate(timeout=300)
    _look(line, f"{job.name}, Ctrl-C twice", process, said, (0, 130, -signal.SIGINT))
    line.expect(not orphans(process.pid), f"{job.name}: left the processes {orphans(process.pid)}")
    if job.outcome(here) != expected:
        code, said = job.finish(here, zygote)
        line.expect(code == 0, f"{job.name} did not go on: exit {code}, {said[-300:]}")
    wrong = different(job.outcome(here), expected)
    line.expect(not wrong, f"{job.name}: {wrong}")
    shutil.rmtree(here)


ATTEMPTS: dict[str, Callable[[Line, Path, Zygote, Effort], None]] = {
    "files that are something else": _read,
    "results where something is": _write,
    "closed and full streams": _streams,
    "homes, locales and old clocks": _homes,
    "no room for what is kept": _full_cache,
    "no permission": _forbidden,
    "Ctrl-C twice": _twice,
}
# Every try of these starts Python anew: not in the short campaign.
STARTING = ("closed and full streams", "homes, locales and old clocks")
