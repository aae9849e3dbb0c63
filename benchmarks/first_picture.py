"""How long a new user waits: from starting `gamma serve demo` to the picture of reasons, by clicks in a real Chromium.

    python benchmarks/first_picture.py

They do what the first page invites to: take the first question it offers, then ask why of the first answer.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time

FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"


def main() -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        started = time.perf_counter()
        words = [sys.executable, "-m", "gamma_kg", "serve", "demo", "--port", "0", "--log-level", "warning"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            found = re.search(r"http://\S+", server.stderr.readline())
            assert found is not None, server.stderr.read()
            told = {"the server answers": time.perf_counter()}
            page = browser.new_page()
            page.set_default_timeout(300_000)
            page.goto(found[0])
            told["the first page is there"] = time.perf_counter()
            page.click(".questions a >> nth=0")
            page.wait_for_selector(".answers tbody tr")
            told["answers are there"] = time.perf_counter()
            page.click(".answers >> text=Why? >> nth=0")
            page.wait_for_selector(".picture svg")
            told["the picture of reasons is there"] = time.perf_counter()
            server.send_signal(signal.SIGTERM)
        browser.close()
    for what, when in told.items():
        print(f"{when - started:6.2f} s  {what}")


if __name__ == "__main__":
    main()
