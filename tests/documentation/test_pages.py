"""What we print, we run: every file, code block and command of README, CONTRIBUTING, CHANGELOG and docs, in order."""

from __future__ import annotations

from pathlib import Path

import pytest
from new_user import NewUser
from pages import PAGES, ROOT, Command, commands, parts

MENTIONS = sorted({c.text for page in PAGES for c in commands(page.read_text("utf-8")) if c.is_mention})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_everything_on_the_page_runs(page: Path, new_user: NewUser) -> None:
    for part in parts(page.read_text("utf-8")):
        # Commands that a text only names are the same on every page: they run once, below.
        if not (isinstance(part, Command) and part.is_mention):
            new_user.take(part)


@pytest.mark.parametrize("text", MENTIONS)
def test_every_command_that_a_page_names_runs(text: str, new_user: NewUser) -> None:
    new_user.run(Command(text, is_in_text=True))
