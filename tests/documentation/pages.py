"""What a page prints, in the order in which a reader meets it: files, Python blocks, commands.

A fenced block with a title is a file. Commands stand in fenced blocks, in indented lines, or in the text as `code`.
A block of `text` is what the part before it prints, a `formula` is neither run nor compared.
Nothing is passed over: a block in a language that is neither run nor a file, and a fence that was not understood, are
errors.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"^(?: {4}|\t)\s*(?P<indented>\S.*)$|(?<!`)`(?P<code>[^`]+)`(?!`)", re.MULTILINE)
TITLE = re.compile(r'title="([^"]+)"')
SHELLS = ("", "sh", "bash", "console", "shell")
# `Code` in the text that starts with one of these and goes on is a command, whether we can run it or not.
PROGRAMS = set("gamma torchrun python python3 pip make git mkdocs pytest ruff mypy uv conda docker curl wget".split())
SETTING = re.compile(r"[A-Z_]+=\S*")


class UnreadableBlockError(AssertionError):
    """Something in a page that would be run by nothing."""


@dataclass(frozen=True)
class File:
    name: str
    body: str


@dataclass(frozen=True)
class PythonBlock:
    body: str


@dataclass(frozen=True)
class Output:
    """What the page says that the part before it prints; numbers may differ."""

    body: str


@dataclass(frozen=True)
class Command:
    """A command as printed, without its comment. `settings` are the variables set in front of it."""

    text: str
    is_in_text: bool = False

    @property
    def _all_words(self) -> list[str]:
        return shlex.split(self.text, comments=True)

    @property
    def words(self) -> list[str]:
        words = self._all_words
        return words[len(self.settings) :]

    @property
    def settings(self) -> dict[str, str]:
        found = {}
        for word in self._all_words:
            if not SETTING.fullmatch(word):
                break
            name, _, value = word.partition("=")
            found[name] = value
        return found

    @property
    def leaves_nothing(self) -> bool:
        """Whether nothing after it on the page goes by what it did: a server that came and went, an installation."""
        words = self.words
        return words[0] in ("make", "pip") or (words[0] == "gamma" and words[1:2] in (["serve"], ["mcp"]))

    @property
    def is_mention(self) -> bool:
        """The name of a command in the text, `gamma evaluate`: without arguments it may or may not be complete."""
        return self.is_in_text and len(self.words) == 2 and self.words[0] == "gamma"


Part = File | PythonBlock | Output | Command


def parts(text: str) -> Iterator[Part]:
    """Everything in a page that a reader may run or save."""
    end = 0
    for fence in FENCE.finditer(text):
        yield from _outside(text[end : fence.start()])
        yield from _fenced(fence)
        end = fence.end()
    yield from _outside(text[end:])


def commands(text: str) -> list[Command]:
    return [part for part in parts(text) if isinstance(part, Command)]


def _fenced(fence: re.Match[str]) -> Iterator[Part]:
    title = TITLE.search(fence["rest"])
    if title is not None:
        yield File(title[1], fence["body"])
    elif fence["language"] == "python":
        yield PythonBlock(fence["body"])
    elif fence["language"] == "text":
        yield Output(fence["body"])
    elif fence["language"] in SHELLS:
        for line in fence["body"].replace("\\\n", " ").splitlines():
            if line.strip() and not line.lstrip().startswith("#"):
                yield Command(line.strip().removeprefix("$ "))
    elif fence["language"] != "formula":
        raise UnreadableBlockError(f"a block in {fence['language']} is neither run nor, for want of a title, a file")


def _outside(text: str) -> Iterator[Command]:
    if "```" in text or "~~~" in text:
        raise UnreadableBlockError(f"a fence that is not understood, in: {text!r}")
    for found in OUTSIDE.finditer(text):
        if found["indented"] is not None:
            yield Command(found["indented"])
        elif _is_command(found["code"]):
            yield Command(" ".join(found["code"].split()), is_in_text=True)


def _is_command(code: str) -> bool:
    words = code.split()
    while words and SETTING.fullmatch(words[0]):
        words = words[1:]
    return len(words) > 1 and words[0] in PROGRAMS
