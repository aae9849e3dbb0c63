"""A real browser for tests: Debian's Chromium, driven by Playwright. Where there is none, the tests say so and skip."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# Nothing may go out: a browser looks for updates at every start.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "GAMMA_REQUIRE_BROWSER"


def missing() -> str | None:
    """Why there is no browser here, if there is none."""
    try:
        import playwright  # noqa: F401
    except ModuleNotFoundError:
        return "needs the extra `dev`: pip install -e .[dev]"
    if not any(shutil.which(name) for name in NAMES):
        return f"needs one of {', '.join(NAMES)}: apt-get install chromium"
    return None


def refuse_or_skip(reason: str) -> None:
    """Skips, unless the surroundings demand that the tests run."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, and the browser tests can't run: {reason}")
    pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, started; all its pages fail the test on a script error or a breach of the content policy."""
    from playwright.sync_api import sync_playwright

    path = next(found for name in NAMES if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
