"""The page that `gamma complete --review` writes, in a real headless Chromium, opened as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser as browsers
import pytest

from gamma_kg import KnowledgeGraph
from gamma_kg.complete.proposals import Fact
from gamma_kg.complete.review import write_review

HOSTILE = "</script><img src=x onerror=alert(1)>"
FACTS = [
    Fact("Ann", "sibling of", "Bob", 0.9, 3.0),
    Fact("=Cleo", "sibling of", "Bob", 0.5, 2.0),
    Fact(HOSTILE, "parent of", "Ann", 0.2, 1.0),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if reason := browsers.missing():
        browsers.refuse_or_skip(reason)
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture
def written(tmp_path: Path) -> str:
    known = [("Bob", "sibling of", "Ann"), ("=Cleo", "parent of", "Bob"), (HOSTILE, "sibling of", "=Cleo")]
    write_review(tmp_path / "page.html", KnowledgeGraph.from_triples(known), FACTS, title=HOSTILE)
    return (tmp_path / "page.html").as_uri()


def test_proposals_are_accepted_rejected_and_downloaded_by_clicks_and_keys(
    chromium: Any, written: str, tmp_path: Path
) -> None:
    context = chromium.new_context(accept_downloads=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(written)
    rows = page.locator("#list > li")
    assert rows.count() == 3 and HOSTILE in rows.nth(2).inner_text()
    rows.nth(1).locator("button.yes").click()
    rows.nth(0).locator("button.no").click()
    page.keyboard.press("j")  # to the second, then the third
    page.keyboard.press("j")
    page.keyboard.press("a")
    assert page.inner_text("#count") == "3 proposals, 2 accepted, 1 rejected"
    page.reload()
    assert page.inner_text("#count") == "3 proposals, 2 accepted, 1 rejected"  # choices stay
    saved = {}
    for kind in ("tsv", "csv", "nt"):
        with page.expect_download() as started:
            page.click(f"[data-save={kind}]")
        started.value.save_as(tmp_path / kind)
        saved[kind] = (tmp_path / kind).read_text("utf-8").splitlines()
    assert len(saved["tsv"]) == 3 and saved["tsv"][1].startswith("=Cleo\tsibling of\tBob\t")
    assert saved["csv"][1].startswith("'=Cleo,sibling of,Bob,")  # no formula for a spreadsheet
    assert saved["nt"][0] == "<urn:gamma:%3DCleo> <urn:gamma:sibling%20of> <urn:gamma:Bob> ." and len(saved["nt"]) == 2
    page.select_option("#show", "no")
    assert [row.is_visible() for row in rows.all()] == [True, False, False]
    page.select_option("#show", "all")
    page.fill("#find", "cleo")
    assert [row.is_visible() for row in rows.all()] == [False, True, False]
    context.close()
    assert not complaints, complaints


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable_on_a_phone_and_axe_finds_nothing_serious(
    chromium: Any, written: str, scheme: str
) -> None:
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ModuleNotFoundError:
        browsers.refuse_or_skip("needs the extra `dev`: pip install -e .[dev]")
    context = chromium.new_context(viewport={"width": 375, "height": 800}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(written)
    page.locator("button.yes").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    found = [v for v in Axe().run(page).response["violations"] if v["impact"] in ("serious", "critical")]
    context.close()
    assert not found, [(v["id"], [node["target"] for node in v["nodes"]][:3]) for v in found]
