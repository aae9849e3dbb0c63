"""Nothing on a page escapes: what can't be run fails, what looks like a command is one, and these checks can fail."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
from new_user import NewUser
from pages import PAGES, PROGRAMS, ROOT, SETTING, Command, UnreadableBlockError, commands, parts
from shrinking import MORE, PLACEHOLDERS, VALUES, shrink

from gamma_kg.cli import app

EVERY = [command for page in PAGES for command in commands(page.read_text("utf-8"))]


def unread_lines(text: str) -> list[str]:
    """Lines that a person would take for commands, read without Markdown's rules, of which no command was made."""
    read = [command.words for command in commands(text)]
    unread = []
    for line in text.splitlines():
        words = line.strip().removeprefix("$ ").rstrip("\\").split(" # ")[0].split()
        while words and SETTING.fullmatch(words[0]):
            words = words[1:]
        if len(words) < 2 or words[0] not in PROGRAMS:
            continue
        words = shlex.split(" ".join(words), comments=True)
        same = next((command for command in read if command[: len(words)] == words), None)
        if same is None:
            unread.append(line)
        else:
            read.remove(same)
    return unread


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_line_that_looks_like_a_command_is_read_as_one(page: Path) -> None:
    assert unread_lines(page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "page",
    [
        "<pre>\ngamma demo\n</pre>\n",
        "```python\n'''\nOMP_NUM_THREADS=2 gamma bench --growth\n'''\n```\n",
        "```sh\ngamma demo\n```\n<pre>\ngamma demo\n</pre>\n",
    ],
)
def test_a_command_outside_of_blocks_is_noticed(page: str) -> None:
    assert len(unread_lines(page)) == 1


@pytest.mark.parametrize(
    "page", ["```yaml\na: b\n```\n", "- a list\n\n  ```sh\n  gamma demo\n  ```\n", "```sh\ngamma demo\n"]
)
def test_a_block_that_nothing_runs_is_an_error(page: str) -> None:
    with pytest.raises(UnreadableBlockError):
        list(parts(page))


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("```sh\ndocker run gamma\n```\n", "is not run by any test"),
        ("```\nsome output\n```\n", "is not run by any test"),
        ("    git clone somewhere\n", "is not run by any test"),
        ("See `git clone somewhere`.\n", "is not run by any test"),
        ("    gamma evaluate nl-100 …\n", "is not complete"),
        ("    gamma demo | head\n", "needs a shell"),
        ("    gamma predict demo --head Kenya --topk 5\n", "ended with 2"),
        ("Try `gamma predikt demo`.\n", "ended with 2"),
        ("    gamma evaluate nl-101 --out runs/x\n", "ended with 2"),
        ("    pip install left-pad\n", "can't be installed"),
        ("    pip install '.[nothing]'\n", "no such extra"),
        ("    make everything\n", "No rule to make target"),
        ("```python\nprint('this 1.5')\n```\n```text\nthat 1.5\n```\n", "printed was"),
    ],
)
def test_a_command_that_fails_or_has_no_way_to_run_fails_its_page(page: str, complaint: str, new_user: NewUser) -> None:
    with pytest.raises(AssertionError, match=complaint):
        for part in parts(page):
            new_user.take(part)


def test_commands_are_read_with_their_settings_and_without_comments() -> None:
    text = "`OMP_NUM_THREADS=2 gamma bench\n--growth`, `gamma`\n\n"
    block = "gamma predict a \\\n  --head 'b c'   # why\n# no\n"
    first, second = commands(f"{text}```sh\n{block}```\n")
    assert (first.settings, first.words) == ({"OMP_NUM_THREADS": "2"}, ["gamma", "bench", "--growth"])
    assert second.words == ["gamma", "predict", "a", "--head", "b c"]


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.text)
def test_the_small_command_keeps_every_option_of_the_printed_one(command: Command) -> None:
    """Numbers of `VALUES` and words of a synopsis are replaced, all else stays in its order."""
    small = iter(shrink(command.words))
    previous = ""
    for word in command.words:
        option = word.partition("=")[0]
        if word not in PLACEHOLDERS and previous not in VALUES:
            assert any(other == word or (option in VALUES and other.startswith(f"{option}=")) for other in small), word
        previous = word


def test_every_way_of_shrinking_is_needed() -> None:
    printed = {word.partition("=")[0] for command in EVERY for word in command.words}
    assert printed >= PLACEHOLDERS.keys() | VALUES.keys()
    assert {tuple(command.words[:2]) for command in EVERY} >= MORE.keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_that_a_text_names_exists(page: Path) -> None:
    named = set(re.findall(r"`(--[a-z][a-z-]*)", page.read_text("utf-8")))
    assert named <= _options(typer.main.get_command(app)) | {"--help"}


def _options(command: object) -> set[str]:
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}  # type: ignore[attr-defined]
    return own.union(*(_options(inner) for inner in getattr(command, "commands", {}).values()))
