"""What we print, we run: every file, code block and command of README, CONTRIBUTING, CHANGELOG and docs, in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from new_user import NewUser
from pages import PAGES, ROOT, Command, commands, parts
from shrinking import shrink

EVERY = [command for page in PAGES for command in commands(page.read_text("utf-8"))]
MENTIONS = sorted({command.text for command in EVERY if command.is_mention})
# By what is run in the end: the synopsis of a command and its example may be the same.
APART = {
    tuple(shrink(command.words)): command for command in EVERY if command.leaves_nothing and not command.is_mention
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_everything_on_the_page_runs(page: Path, new_user: NewUser) -> None:
    for part in parts(page.read_text("utf-8")):
        # Commands that a text only names, and servers, are the same on every page: they run once, below.
        if not (isinstance(part, Command) and (part.is_mention or part.leaves_nothing)):
            new_user.take(part)


@pytest.mark.parametrize("text", MENTIONS)
def test_every_command_that_a_page_names_runs(text: str, new_user: NewUser) -> None:
    new_user.run(Command(text, is_in_text=True))


@pytest.mark.parametrize("command", APART.values(), ids=lambda command: command.text)
def test_servers_and_installations_of_the_pages_run(command: Command, new_user: NewUser) -> None:
    new_user.run(command)
