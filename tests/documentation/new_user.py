"""A new user: a folder with benchmarks, and for each program a way to run it for real.

| program | how |
|---|---|
| gamma | in this process, as the installed command does; a non-zero exit fails |
| torchrun | as a job of two processes on loopback |
| python | the script, in this process |
| make | the whole recipes, in an environment whose pip, pytest, ruff and mypy only note what they are asked |
| pip | pip itself, offline, up to the point where it would install |
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import stand_ins
import typer
from pages import ROOT, Command, File, Output, Part
from shrinking import shrink
from tiny_sets import SETS, write_ultra

from gamma_kg.bench import local_queries as local_bench
from gamma_kg.bench import start
from gamma_kg.bench import suite as bench
from gamma_kg.bench.training import measure_step
from gamma_kg.cli import app, main
from gamma_kg.data.benchmark import count_lines, file_sha256
from gamma_kg.data.catalog import Download, catalog
from loopback import Endpoint, FileServer

# An endpoint of a page, answered by a server of ours with the facts of this file of the page.
ENDPOINT, ENDPOINT_FILE = "sparql:https://example.org/query", "cities.ttl"
# Databases of a page: a store on the reader's own machine, and a public one.
LOCAL_STORE = "sparql:http://localhost:3030/facts/"
FILM_DATABASE = "neo4j+s://movies:movies@demo.neo4jlabs.com:7687/movies"
# What each target of the Makefile does in the end.
MADE = {"demo": "gamma demo", "test": "python -m pytest -n auto --dist worksteal", "docs": "mkdocs build --strict"}
# What a shell would do with these, we do not.
SHELL_SIGNS = {"|", "||", "&", "&&", ";", ">", ">>", "<"}


@dataclass
class NewUser:
    folder: Path
    sets: Path  # tiny benchmark sets to start from
    files: FileServer
    endpoint: Callable[[str], Endpoint]
    database: Callable[[], str]  # the address of a Neo4j of films
    monkeypatch: pytest.MonkeyPatch
    printed: str = ""  # by the last part

    def __post_init__(self) -> None:
        (self.folder / "benchmarks").symlink_to(ROOT / "benchmarks")
        shutil.copytree(self.sets, self.folder / "datasets")
        for name in ("ultra_3g.pth", "ultraquery.pth"):
            write_ultra(self.folder / name)
        for name, text in stand_ins.FILES.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        for name in stand_ins.TRAINING_GRAPHS:
            shutil.copy(self.sets / "wn18rr" / "train.txt", self.folder / name)
        patch = self.monkeypatch
        patch.chdir(self.folder)
        patch.setenv("GAMMA_DATA", str(self.folder / "datasets"))
        patch.setenv("XDG_CACHE_HOME", str(self.folder / "cache"))
        # A graph that another page calibrated would answer with other probabilities, and take ten times as long.
        patch.setenv("GAMMA_CACHE", str(self.folder / "cache"))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(bench, "GROWTH", [500, 1000])
        patch.setattr(local_bench, "GROWTH", (500, 1000))
        small_step = partial(measure_step, num_entities=30, num_triples=90, num_relations=4, batch_size=4, negatives=8)
        patch.setattr(bench, "measure_step", small_step)
        patch.setattr(start, "_run", lambda command: None)  # whole commands; tests/bench starts them
        for slug in SETS:
            self._serve(slug)

    def take(self, part: Part) -> None:
        """Save the file, run the block or the command."""
        match part:
            case File(name, body):
                Path(name).write_text(body, encoding="utf-8")
            case Output(body):
                assert _without_numbers(body) in _without_numbers(self.printed), f"printed was:\n{self.printed}"
            case _:
                with redirect_stdout(io.StringIO()) as out:
                    if isinstance(part, Command):
                        self.run(part)
                    else:
                        exec(compile(part.body, "page", "exec"), {"__name__": "__page__"})
                self.printed = out.getvalue()

    def run(self, command: Command) -> None:
        words = command.words
        how = {"gamma": _gamma, "torchrun": _torchrun, "python": _python, "make": self._make, "pip": _pip}
        assert words and words[0] in how, f"{command.text!r} is not run by any test"
        assert not SHELL_SIGNS & set(words), f"{command.text!r} needs a shell, so no test runs it"
        if command.is_mention and _needs_arguments(words[1]):
            words = [*words, "--help"]
        words = [self._address(word) for word in shrink(words)]
        assert not any("…" in word for word in words), f"{command.text!r} is not complete, so no test runs it"
        if words[:3] == ["gamma", "datasets", "fetch"]:  # who fetches them has not got them
            for slug in words[3:]:
                shutil.rmtree(self.folder / "datasets" / slug, ignore_errors=True)
        with self.monkeypatch.context() as patch:
            for name, value in command.settings.items():
                patch.setenv(name, value)
            how[words[0]](words[1:], patch)
        for option, value in pairwise(words):
            if option in ("--out", "-o"):
                assert Path(value).exists(), f"{command.text!r} did not write {value}"

    def _serve(self, slug: str) -> None:
        """Put the set on the server, and its address in place of the real one."""
        entry, downloads, facts = catalog()[slug], [], {}
        for name, real in entry.files.items():
            path = self.sets / slug / name
            self.files.files[f"{slug}/{name}"] = path.read_bytes()
            downloads.append(Download(name, (f"{self.files.url}/{slug}/{name}",)))
            facts[name] = replace(real, lines=count_lines(path), sha256=file_sha256(path), lines_at_origin=None)
        self.monkeypatch.setitem(catalog(), slug, replace(entry, downloads=tuple(downloads), files=facts))  # type: ignore[arg-type]

    def _address(self, word: str) -> str:
        """The address of a server of ours, in place of one on the network."""
        if word == ENDPOINT:
            return self.endpoint(Path(ENDPOINT_FILE).read_text("utf-8")).url
        if word.startswith(LOCAL_STORE):
            return self.endpoint(stand_ins.COUNTRIES).url
        return self.database() if word == FILM_DATABASE else word

    def _make(self, arguments: list[str], patch: pytest.MonkeyPatch) -> None:
        """Runs every line of the recipes; `gamma` is ours, what installs or checks is noted."""
        environment, notes = self.folder / "environment", self.folder / "notes.txt"
        (environment / "bin").mkdir(parents=True, exist_ok=True)
        for name in ("python", "ruff", "mypy", "mkdocs", "gamma"):
            does = f'exec {shlex.quote(sys.executable)} -m gamma_kg "$@"' if name == "gamma" else ""
            program = environment / "bin" / name
            program.write_text(f'#!/bin/sh\necho {name} "$@" >> {shlex.quote(str(notes))}\n{does}\n')
            program.chmod(0o755)
        # A new user has not set what CI sets: the recipes of the page are those without the hashed lock.
        _process(["make", *arguments, f"VENV={environment}", "HASHED="], cwd=ROOT)
        noted = notes.read_text().splitlines()
        assert f"python -m pip --disable-pip-version-check -q install --no-compile {_pinned_torch()}" in noted
        assert MADE[arguments[-1]] in noted


def _without_numbers(text: str) -> str:
    """Lines with one sign for every number, and no room for how wide it is: other weights move the last digits."""
    return "\n".join(" ".join(re.sub(r"\d+(\.\d+)?", "#", line).split()) for line in text.splitlines())


def _gamma(arguments: list[str], patch: pytest.MonkeyPatch) -> None:
    if arguments[0] == "serve" and "--help" not in arguments:
        _serve_and_end(arguments)
        return
    if arguments[0] == "mcp" and "--help" not in arguments:
        _process([sys.executable, "-m", "gamma_kg", *arguments])  # its client says nothing and goes away
        return
    patch.setattr(sys, "argv", ["gamma", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code, f"gamma {shlex.join(arguments)} ended with {stop.value.code}"


def _torchrun(arguments: list[str], patch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        patch.setenv("PET_MASTER_PORT", str(probe.getsockname()[1]))
    _process([sys.executable, "-m", "torch.distributed.run", *arguments])


def _python(arguments: list[str], patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "argv", arguments)
    runpy.run_path(arguments[0], run_name="__main__")


def _pip(arguments: list[str], patch: pytest.MonkeyPatch) -> None:
    assert arguments[0] == "install", f"pip {arguments[0]} is not run by any test"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for wanted in arguments[1:]:
        name, *asked = re.split(r"[\[\],]+", wanted.strip("]"))
        assert name == "." or wanted == _pinned_torch(), f"{wanted} can't be installed from anywhere we know of"
        assert set(asked) <= set(extras), f"{wanted}: pyproject.toml has no such extra"
    offline = ["--dry-run", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    _process([sys.executable, "-m", "pip", *arguments, *offline], cwd=ROOT)


def _pinned_torch() -> str:
    return next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))


def _serve_and_end(arguments: list[str]) -> None:
    """Starts the server as a process, looks at its page, and ends it as an operator would."""
    words = [sys.executable, "-m", "gamma_kg", *arguments, "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        line = server.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address is not None, line + server.stderr.read()
        with urllib.request.urlopen(f"{address[0].replace('0.0.0.0', '127.0.0.1')}/readyz", timeout=300) as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


def _process(words: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr[-2000:]}"


def _needs_arguments(name: str) -> bool:
    """Whether a command that a text only names can't be run without more."""
    command = typer.main.get_command(app).commands.get(name)
    return command is not None and any(parameter.required for parameter in command.params)
