"""The site builds offline, with its pictures and the command reference; every example runs."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from pages import ROOT

from gamma_kg.cli import app

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def test_there_are_three_examples() -> None:
    assert len(EXAMPLES) >= 3


def test_pictures_of_the_algebras_and_the_command_reference_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from algebra_pictures import ALGEBRA_PICTURES, product
    from command_reference import command_reference

    assert set(ALGEBRA_PICTURES) == {"real", "complex", "split-complex", "dual"}
    for draw in ALGEBRA_PICTURES.values():
        ElementTree.fromstring(draw())
    assert product((0, 1), (0, 1), -1) == (-1, 0) and product((0, 1), (0, 1), 1) == (1, 0)
    reference = command_reference()
    for name in typer.main.get_command(app).commands:
        assert f"## `gamma {name}" in reference


def test_the_table_of_all_commands_has_all_of_them() -> None:
    table = (ROOT / "docs" / "index.md").read_text("utf-8").partition("## All commands")[2]
    missing = [name for name in typer.main.get_command(app).commands if f"gamma {name}" not in table]
    assert not missing


def test_the_site_builds_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (
        shutil.which("mkdocs", path=str(Path(sys.executable).parent)) and _has("mkdocstrings") and _has("material")
    ):
        pytest.skip("needs the extra `docs`: pip install -e .[docs]")
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "NO_MKDOCS_2_WARNING": "1",
        "DISABLE_MKDOCS_2_WARNING": "true",
    }
    program = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "site" / "commands" / "index.html").exists()
    assert (tmp_path / "site" / "pictures" / "dual.svg").exists()


def _has(name: str) -> bool:
    return find_spec(name) is not None
