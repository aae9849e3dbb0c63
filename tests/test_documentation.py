"""What we print, we run: every command and code block of README and docs, and every example.

In a page the blocks run in order in one folder. A fenced block with a title is a file, and is written there. Commands
that train, download or evaluate for minutes are not run: their options are parsed, so that none can be misspelt.
"""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from gamma_kg.cli import app, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
# Seconds each, and they need nothing but the package.
RUN = {"demo", "predict", "complete", "explain", "info"}
# Programs around ours, in the pages for people; make and pip would install what the tests run in.
NOT_OURS = ("make ", "pip install ", "torchrun ", "python ", "git ", "mkdocs ", "export ", "GAMMA_", "#")


@dataclass(frozen=True)
class Block:
    language: str
    title: str | None
    body: str


def blocks(page: Path) -> list[Block]:
    found = []
    for match in FENCE.finditer(page.read_text(encoding="utf-8")):
        title = TITLE.search(match["rest"])
        found.append(Block(match["language"], title[1] if title else None, match["body"]))
    return found


def commands(text: str) -> list[list[str]]:
    """The `gamma` commands of a block, without comments; explanations after two blanks are no part of them."""
    joined = text.replace("\\\n", " ")
    lines = [re.split(r"\s{2,}|\s#\s", line.strip())[0] for line in joined.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("gamma ")]


def indented_commands(page: Path) -> list[list[str]]:
    outside = FENCE.sub("", page.read_text(encoding="utf-8"))
    return commands("\n".join(line for line in outside.splitlines() if line.startswith("    gamma ")))


def inline_commands(page: Path) -> list[list[str]]:
    outside = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [shlex.split(text)[1:] for text in re.findall(r"`(gamma [^`…]*)`", outside)]


def check_options(arguments: list[str]) -> None:
    """Fails if the command or one of its options does not exist; values are not looked at."""
    command = typer.main.get_command(app)
    names = []
    while arguments and arguments[0] in getattr(command, "commands", {}):
        names.append(arguments[0])
        command = command.commands[arguments[0]]
        arguments = arguments[1:]
    assert names or not arguments or arguments[0].startswith(("-", "COMMAND")), f"no command {arguments}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {argument.split("=")[0] for argument in arguments if re.match(r"--?[a-z]", argument)}
    assert used <= known | {"--help"}, f"gamma {' '.join(names)} has no option {used - known}"


def run_command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gamma", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code, f"gamma {shlex.join(arguments)} ended with {stop.value.code}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        if block.title is not None:
            Path(block.title).write_text(block.body, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.body, str(page), "exec"), {"__name__": "__page__"})
        else:
            for arguments in commands(block.body):
                check_options(arguments)
                if block.language == "sh" and arguments and arguments[0] in RUN:
                    run_command(arguments, monkeypatch)
    for arguments in (*indented_commands(page), *inline_commands(page)):
        check_options(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_a_shell_block_goes_unchecked(page: Path) -> None:
    for block in blocks(page):
        if block.language in ("sh", "bash", "console") and block.title is None:
            joined = block.body.replace("\\\n", " ")
            for line in filter(None, map(str.strip, joined.splitlines())):
                assert line.startswith(("gamma ", *NOT_OURS)), f"{page.name}: {line!r} is not run by any test"


def test_a_misspelt_option_is_found() -> None:
    with pytest.raises(AssertionError, match="--topk"):
        check_options(["predict", "demo", "--topk", "5"])
    with pytest.raises(AssertionError, match="no command"):
        check_options(["predikt", "demo"])


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
    from xml.etree import ElementTree

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


def test_the_site_builds_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (
        shutil.which("mkdocs", path=str(Path(sys.executable).parent)) and _has("mkdocstrings") and _has("material")
    ):
        pytest.skip("needs the extra `docs`: pip install -e .[docs]")
    import os
    import subprocess

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
    from importlib.util import find_spec

    return find_spec(name) is not None
