"""A few of each line of the fault campaign; `python benchmarks/faults.py` runs all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from campaign.killing import commands, in_pythons_start  # noqa: E402
from campaign.lines import SHORT, Line  # noqa: E402

import faults  # noqa: E402

# Lines that are tried at every `make test`, a few seconds each; `--short` tries some of every kind.
LINES = {
    "killed": ("killed: complete", "killed: index", "killed: serve"),
    "two at once": ("two at once: index", "two at once: serve"),
    "full disk": ("full disk: predict", "full disk: serve"),
    "read-only": ("read-only folder: evaluate", "read-only folder: pretrain"),
    "surroundings": ("replaced while read: facts.tsv, written over",),
    "hostile": ("remote JSON-LD contexts",),
    "threads": ("one model", "fork after the first answer"),
    "native": ("native: ids", "native: empty"),
    "supply": ("supply",),
}


@pytest.fixture(scope="module")
def zygote() -> Iterator[None]:
    """One process that has imported everything, for the commands of all parts."""
    with commands():
        yield


@pytest.mark.usefixtures("zygote")
@pytest.mark.parametrize("part", LINES)
def test_nothing_is_lost_and_nobody_gets_in(part: str, tmp_path: Path) -> None:
    lines = list(faults.PARTS[part](tmp_path, replace(SHORT, kills=1, only=LINES[part])))
    assert [f"{line.name}: {complaint}" for line in lines for complaint in line.wrong] == []
    assert len(lines) >= len(LINES[part]) and all(line.tried or line.skipped for line in lines)


def test_a_line_counts_what_is_wrong() -> None:
    line = Line("x")
    line.expect(True, "no")
    line.expect(False, "the reason")
    assert (line.tried, line.wrong) == (2, ["the reason"]) and "2 tried" in str(line) and "1 wrong" in str(line)


def test_a_campaign_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def part(folder: Path, effort: faults.Effort) -> list[Line]:
        wanted = [Line(name) for name in ("a", "b") if effort.wants(name)]
        for line in wanted:
            line.expect(line.name != "b", "broken")
            tried.append(line.name)
        return wanted

    record = tmp_path / "record.jsonl"
    record.write_text(json.dumps({"name": "a", "tried": 7}) + "\n")
    monkeypatch.setattr(faults, "PARTS", {"p": part})
    monkeypatch.setattr(faults, "commands", nullcontext)
    for words in (["--go-on"], []):
        monkeypatch.setattr("sys.argv", ["faults.py", "--part", "p", "--record", str(record), *words])
        assert faults.main() == 1
    assert tried == ["b", "a", "b"]
    assert [(line.name, line.tried, len(line.wrong)) for line in faults.read_record(record)] == [
        ("a", 1, 0),
        ("b", 1, 1),
    ]


def test_the_campaign_is_a_program() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARKS / "faults.py"), "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--short" in done.stdout


PLACE = '  File "{}", line 3, in {}\n    import x\n'


@pytest.mark.parametrize(
    ("places", "passes"),
    [
        ([("<frozen site>", "main"), ("/usr/lib/python3.11/encodings/utf_8.py", "<module>")], True),
        ([("<frozen site>", "exec"), ("/venv/lib/python3.11/site-packages/_gamma_editable.py", "<module>")], True),
        ([("<frozen runpy>", "_run_module_as_main"), ("/src/gamma_kg/__main__.py", "<module>")], True),
        ([("<frozen runpy>", "_run_code"), ("/src/gamma_kg/__main__.py", "main")], False),
        ([("<frozen runpy>", "_run_code"), ("/src/gamma_kg/cli/predict.py", "<module>")], False),
        ([("<frozen site>", "x"), ("/venv/lib/python3.11/site-packages/torch/__init__.py", "<module>")], False),
        ([("/usr/lib/python3.11/threading.py", "_shutdown")], False),
    ],
)
def test_only_a_traceback_of_pythons_own_start_passes(places: list[tuple[str, str]], passes: bool) -> None:
    said = "Traceback (most recent call last):\n" + "".join(PLACE.format(*place) for place in places)
    assert in_pythons_start(said + "KeyboardInterrupt\n") is passes
    assert not in_pythons_start(said + "ValueError: no\n")
