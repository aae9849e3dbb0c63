"""A few of each line of the fault campaign; `python benchmarks/faults.py` runs all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from campaign.commands import commands  # noqa: E402
from campaign.killing import in_pythons_start  # noqa: E402
from campaign.lanes import tried  # noqa: E402
from campaign.lines import SHORT, Effort, Line, NotHereError  # noqa: E402
from campaign.setting import Attempt, Part, Setting  # noqa: E402

import faults  # noqa: E402

# Lines that are tried at every `make test`, a few seconds each; `--short` tries some of every kind.
LINES = {
    "killed": ("killed: complete", "killed: index", "killed: serve"),
    "two at once": ("two at once: index", "two at once: serve"),
    "full disk": ("full disk: predict", "full disk: serve"),
    "read-only": ("read-only folder: evaluate", "read-only folder: pretrain"),
    "surroundings": ("replaced while read: facts.tsv, written over",),
    "careless": ("careless: results where something is", "careless: no permission"),
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
    names = faults.chosen([part], SHORT, LINES[part])
    effort = replace(SHORT, kills=1)
    attempts = faults.PARTS[part].attempts(effort)
    lines = [tried(name, attempts[name], tmp_path, tmp_path / str(i), effort) for i, name in enumerate(sorted(names))]
    assert [f"{line.name}: {complaint}" for line in lines for complaint in line.wrong] == []
    assert len(names) >= len(LINES[part])
    assert all(line.tried or line.skipped for line in lines)


def test_a_line_counts_what_is_wrong() -> None:
    line = Line("x")
    line.expect(True, "no")
    line.expect(False, "the reason")
    assert (line.tried, line.wrong) == (2, ["the reason"]) and "2 tried" in str(line) and "1 wrong" in str(line)


def test_lines_of_a_kind_are_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [Line("killed: index", 3, ["lost"], processor_seconds=2), Line("killed: serve", 4), Line("bombs", 5)]
    found = {line.name: line for line in faults.by_kind(lines)}
    assert (found["killed"].tried, found["killed"].wrong, found["killed"].remark) == (7, ["lost"], "2 lines")
    assert found["hostile"].tried == 5 and len(found) == 2
    assert faults.print_table(list(found.values()), []) == 1
    assert "| killed (2 lines) | 7 | 1 | 2 |" in capsys.readouterr().out


def _part(effort: Effort) -> dict[str, Attempt]:
    """Line b is wrong, the campaign itself fails in c, and d can't be tried."""
    return {"a": _right, "b": _wrong, "c": _failing, "d": _absent}


def _right(line: Line, setting: Setting) -> None:
    line.expect(setting.folder.is_dir() and not list(setting.folder.iterdir()), "no empty folder")


def _wrong(line: Line, setting: Setting) -> None:
    line.expect(False, "broken")


def _failing(line: Line, setting: Setting) -> None:
    raise RuntimeError("no c today")


def _absent(line: Line, setting: Setting) -> None:
    raise NotHereError("no disk to be had")


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_campaign_goes_on_and_no_line_is_missed(lanes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "record.jsonl"
    record.write_text(json.dumps({"name": "a", "tried": 7}) + "\n")
    monkeypatch.setattr(faults, "PARTS", {"p": Part(_part, together=2)})
    for words, tried_a in ((["--go-on"], 7), ([], 1)):
        words += ["--part", "p", "--record", str(record), "--lanes", str(lanes)]
        monkeypatch.setattr("sys.argv", ["faults.py", *words])
        assert faults.main() == 1
        lines, goes = faults.read_record(record)
        found = {line.name: line for line in lines}
        assert (found["a"].tried, found["b"].wrong) == (tried_a, ["broken"])
        assert "no c today" in found["c"].wrong[0]
        assert (found["d"].skipped, found["d"].wrong) == ("no disk to be had", [])
        assert [go["lines"] for go in goes] == [4 if tried_a == 1 else 3] and goes[0]["minutes"] >= 0


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
