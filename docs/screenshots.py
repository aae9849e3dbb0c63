"""Makes the pictures of docs/how-to/serve.md again: python docs/screenshots.py (wants Chromium, the extra dev)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "how-to" / "serve"
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"
# Name, address, scheme, width and height of the window.
SHOTS = (
    ("overview", "/g/demo", "light", 1100, 640),
    ("ask", "/g/demo/ask?head=Kenya&relation=borders&known=include", "light", 1100, 820),
    (
        "question",
        "/g/demo/question?join=and&head=?river&relation=flows+through&tail=?x&join=and&head=?river&relation=mouth+in"
        "&tail=Black+Sea&join=not&head=?x&relation=member+of&tail=European+Union",
        "light",
        1100,
        900,
    ),
    ("why", "/g/demo/why?head=Kenya&relation=borders&tail=Tanzania", "dark", 1100, 1440),
    ("entity", "/g/demo/entity?name=Kenya", "light", 1100, 960),
    ("phone", "/g/demo/ask?head=Kenya&relation=borders", "dark", 390, 800),
)


def main() -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "gamma_kg", "serve", "demo", "--port", "0", "--log-level", "warning"]
    # An empty cache: probabilities that someone fitted on this machine would show.
    with (
        tempfile.TemporaryDirectory() as cache,
        subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, "GAMMA_CACHE": cache}) as server,
    ):
        assert server.stderr is not None
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found is not None, server.stderr.read()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
            for name, path, scheme, width, height in SHOTS:
                view = {"width": width, "height": height}
                context = browser.new_context(viewport=view, color_scheme=scheme)
                context.set_default_timeout(120_000)
                page = context.new_page()
                page.goto(found[0] + path)
                page.screenshot(path=FOLDER / f"{name}.png")
                context.close()
            browser.close()
        server.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
