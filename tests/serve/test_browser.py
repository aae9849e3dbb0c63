"""What a person does on the page, in a real headless Chromium: search, ask, why, missing facts, an own graph."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import browser as browsers
import pytest
from running import running

from gamma_kg import Gamma
from gamma_kg.demo import demo_graph
from gamma_kg.predicting.models import resolve_model
from gamma_kg.serve.hosted import HostedGraphs
from gamma_kg.serve.limits import Limits
from gamma_kg.serve.service import Service


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if reason := browsers.missing():
        browsers.refuse_or_skip(reason)
    graphs = HostedGraphs()
    graphs.add("demo", demo_graph())
    # A busy machine must not make these fail.
    with running(Service(resolve_model(None), graphs, Limits(seconds=120, grace_seconds=0))) as found:
        yield found


@pytest.fixture(scope="module")
def chromium(address: str) -> Iterator[Any]:
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture
def page(chromium: Any, address: str) -> Iterator[Any]:
    context = chromium.new_context(base_url=address, accept_downloads=True)
    context.set_default_timeout(40_000)
    tab = context.new_page()
    complaints: list[str] = []
    outside: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: None if request.url.startswith(address) else outside.append(request.url))
    yield tab
    context.close()
    assert not complaints and not outside, (complaints, outside)


def test_search_completes_names_by_keyboard_and_shows_the_entity(page: Any) -> None:
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("keny")
    page.wait_for_selector("#find ~ .matches li")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#find", "aria-activedescendant") == "matches-0-0"
    page.keyboard.press("Enter")
    page.wait_for_url("**/entity?name=Kenya")
    assert page.inner_text("h1") == "Kenya" and page.locator(".tag").count() > 0
    picture = page.locator(".picture svg:visible")
    assert "Nairobi" in picture.inner_html() and picture.locator("a").count() > 5
    page.click(".picture a[aria-label='Nairobi'] >> nth=0")
    page.wait_for_url("**/entity?name=Nairobi")


def test_a_question_is_answered_and_its_address_asks_it_again(page: Any) -> None:
    page.goto("/g/demo/ask")
    page.fill("#field-head", "Kenya")
    page.fill("#field-relation", "bord")
    page.wait_for_selector("#field-relation ~ .matches li")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.input_value("#field-relation") == "borders"
    page.click("main button:has-text('Ask')")
    page.wait_for_selector(".answers tr >> text=Tanzania")
    assert "head=Kenya" in page.url and "relation=borders" in page.url
    first = page.locator(".answers tbody tr").first
    share = float(first.locator(".bar-fill").get_attribute("width") or 0)
    shown = first.locator("td.number").nth(1).inner_text()
    assert "Tanzania" in first.inner_text()
    assert share == pytest.approx(float(shown.strip("%")), abs=0.06) and share > 10
    assert first.locator(".shares rect").count() == len(Gamma.from_pretrained().branch_names)
    answers = page.inner_text(".answers")
    page.goto(page.url)
    assert page.inner_text(".answers") == answers
    page.goto(page.url + "&known=include")
    assert page.locator(".tag.known").count() >= 4


def test_a_question_grows_line_by_line_and_its_steps_lead_to_their_reasons(page: Any) -> None:
    page.goto("/g/demo/ask")
    page.click("main >> text=Ask in several steps")
    page.fill("#field-head-1", "?river")
    page.fill("#field-relation-1", "flows thr")
    page.wait_for_selector("#field-relation-1 ~ .matches li")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.fill("#field-tail-1", "?x")
    page.click("text=Add a condition")
    page.wait_for_selector("#field-head-2:focus")  # the new line is where one goes on typing
    page.keyboard.type("?river")
    page.fill("#field-relation-2", "mouth in")
    page.fill("#field-tail-2", "Black Sea")
    page.keyboard.press("Enter")  # asks, and takes no line away
    page.wait_for_selector(".answers tbody tr")
    assert page.locator(".line").count() == 2 and page.input_value("#field-relation-1") == "flows through"
    assert "follows from the graph" in page.locator(".answers tbody tr").first.inner_text()
    assert page.locator(".answers thead >> text=?river").count() == 1
    answers = page.inner_text(".answers")
    page.goto(page.url)
    assert page.inner_text(".answers") == answers  # the address holds the question
    everything = page.locator(".answers tbody tr td:nth-child(2)").all_inner_texts()
    page.click("text=Add a condition")
    page.wait_for_selector("#field-head-3")
    page.select_option("#join-3", "not")
    page.fill("#field-head-3", "?x")
    page.fill("#field-relation-3", "member of")
    page.fill("#field-tail-3", "European Union")
    page.click("main .deeds >> text=Ask")
    page.wait_for_selector(".answers tbody tr")
    left = page.locator(".answers tbody tr td:nth-child(2)").all_inner_texts()
    assert "Romania" in everything and "Romania" not in left and "Ukraine" in left
    page.click("text=The same in SPARQL")
    assert "FILTER NOT EXISTS { ?x <member of> <European Union> }" in page.inner_text("details.card pre")
    row = page.locator(".answers tbody tr", has_text="predicted").first
    row.locator("summary").click()
    predicted = row.locator("li:not(:has(.known))").first
    assert "%" in predicted.inner_text()
    predicted.locator("text=Why?").click()
    page.wait_for_selector(".picture svg")
    page.go_back()
    page.click("[aria-label='Take line 3 away']")
    page.wait_for_selector("#field-head-3", state="detached")
    assert page.locator(".answers").count() == 0  # changed, and not asked yet


def test_a_question_in_sparql_is_answered_or_told_what_to_write_instead(page: Any) -> None:
    page.goto("/g/demo/question")
    page.click("summary:has-text('SPARQL')")
    page.fill("#sparql", "SELECT ?x WHERE { <Kenya> <borders>/<official language> ?x } LIMIT 3")
    page.click("main .deeds >> text=Ask")
    page.wait_for_selector(".answers tbody tr")
    assert page.locator(".answers tbody tr").count() == 3
    page.fill("#sparql", "")
    page.fill("#field-head-1", "?x")
    page.fill("#field-relation-1", "borders")
    page.click("main .deeds >> text=Ask")
    page.wait_for_selector(".complaint")
    assert "Line 1 lacks a part" in page.inner_text(".complaint")


def test_reasons_are_a_picture_and_a_click_on_a_fact_takes_it_away(page: Any) -> None:
    page.goto("/g/demo/ask?head=Kenya&relation=borders")
    page.click(".answers tr:has-text('Tanzania') >> text=Why?")
    page.wait_for_selector(".picture svg")
    # As it is written: how lines break depends on whether the style has come yet.
    before = page.text_content(".figures >> nth=0")
    tips = page.locator(".picture svg a title").all_text_contents()
    assert any("borders" in tip for tip in tips)
    page.evaluate(
        "new MutationObserver(() => { sessionStorage.waited = 1; })"
        ".observe(document.getElementById('busy'), { attributes: true })"
    )
    page.route("**/why?*", lambda route: (time.sleep(1), route.continue_()), times=1)  # the server takes its time
    page.locator("a:has-text('What if gone?')").first.click()
    page.wait_for_selector(".what-if")
    assert page.evaluate("sessionStorage.waited") == "1" and page.locator("#busy").is_hidden()
    assert "→" in page.inner_text(".what-if .figures") and page.text_content(".figures >> nth=0") != before
    page.click("text=Put it back")
    page.wait_for_selector(".what-if", state="detached")
    assert page.text_content(".figures >> nth=0") == before
    page.locator(".picture svg a").first.focus()
    page.keyboard.press("Enter")  # the arrow itself, by keyboard
    page.wait_for_selector(".what-if")


def test_missing_facts_of_an_entity_are_found_accepted_and_downloaded(page: Any, tmp_path: Path) -> None:
    page.goto("/g/demo/entity?name=Kenya")
    page.click("text=Find its missing facts")
    page.wait_for_selector(".answers tbody tr")
    row = page.locator(".answers tbody tr").first
    fact = row.locator("td").nth(1).inner_text()
    row.locator("button[data-says=accepted]").click()
    page.wait_for_selector(".answers tbody tr.accepted")
    page.locator(".answers tbody tr").nth(1).locator("button[data-says=rejected]").click()
    page.wait_for_selector(".answers tbody tr.rejected")
    page.goto("/g/demo/missing")
    assert fact in page.inner_text("tr.accepted")
    for kind in ("TSV", "CSV", "N-Triples"):
        with page.expect_download() as started:
            page.click(f".card a:has-text('{kind}')")
        saved = tmp_path / started.value.suggested_filename
        started.value.save_as(saved)
        assert fact.split(" ")[0] in saved.read_text("utf-8")
    page.click("tr.accepted button[data-says=accepted]")  # taken back
    page.wait_for_selector("tr.accepted", state="detached")


def test_answers_are_gone_through_by_keys(page: Any) -> None:
    page.goto("/g/demo/ask?head=Kenya&relation=currency&top=4")
    rows = page.locator(".answers tbody tr")
    page.keyboard.press("a")  # no answer is looked at yet
    for key in ("j", "j", "a"):
        page.keyboard.press(key)
    page.wait_for_selector(".answers tbody tr:nth-child(2).accepted")
    page.keyboard.press("k")
    page.keyboard.press("r")
    page.wait_for_selector(".answers tbody tr:nth-child(1).rejected")
    assert [row.get_attribute("class") or "" for row in rows.all()] == ["rejected", "accepted", "", ""]
    for key in ("u", "j", "u"):
        page.keyboard.press(key)
    page.wait_for_selector(".answers tbody tr.accepted", state="detached")
    page.wait_for_selector(".answers tbody tr.rejected", state="detached")
    page.focus("#field-head")
    page.keyboard.type("ja")  # letters, where one types
    assert page.input_value("#field-head").startswith("ja") and page.locator("tr.accepted").count() == 0


def test_hasty_clicks_on_a_verdict_count_in_their_order_and_as_they_were_meant(page: Any) -> None:
    def click(*buttons: str) -> None:
        answered = itertools.count(1)

        def is_last(response: Any) -> bool:
            return response.url.endswith("/decide") and next(answered) == len(buttons)

        with page.expect_response(is_last):  # all clicks come before the first of them is answered
            page.evaluate(
                "(all) => all.forEach((one) => document.querySelector(`form.verdict [data-says=${one}]`).click())",
                list(buttons),
            )

    page.goto("/g/demo/ask?head=Uganda&relation=borders")
    click("accepted", "accepted")
    page.wait_for_function("document.getElementById('said').textContent")
    assert page.locator(".answers tbody tr").first.get_attribute("class") == "accepted"
    page.goto("/g/demo/ask?head=Uganda&relation=borders")
    assert page.locator(".answers tbody tr").first.get_attribute("class") == "accepted"
    click("rejected", "accepted", "rejected")
    page.wait_for_selector(".answers tbody tr.rejected")
    page.goto("/g/demo/ask?head=Uganda&relation=borders")
    page.locator(".answers tbody tr.rejected [data-says=rejected]").click()  # taken back, for the other tests
    page.wait_for_selector(".answers tbody tr.rejected", state="detached")


def test_a_verdict_that_the_script_could_not_send_is_sent_by_the_form(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address)
    context.set_default_timeout(40_000)
    tab = context.new_page()
    tab.goto("/g/demo/ask?head=Uganda&relation=borders")
    tab.route("**/decide", lambda route: route.abort(), times=1)  # the script's own try never arrives
    with tab.expect_navigation():
        tab.locator("form.verdict [data-says=accepted]").first.click()
    tab.goto("/g/demo/ask?head=Uganda&relation=borders")
    tab.locator(".answers tbody tr.accepted [data-says=accepted]").click()
    tab.wait_for_selector(".answers tbody tr.accepted", state="detached")
    context.close()


def test_the_whole_graph_is_searched_with_progress_and_can_be_cancelled(page: Any) -> None:
    page.goto("/g/demo/missing")
    page.click("main button:has-text('Find')")
    page.wait_for_selector("progress")
    page.wait_for_selector("[data-job-count]:has-text(' of ')")
    page.click("text=Cancel")
    page.wait_for_selector("[data-job-state]:has-text('cancelled')")
    # The page is loaded again at the end of a job, a moment after it says so.
    page.wait_for_selector("progress", state="detached")
    assert page.locator("progress").count() == 0


def test_a_graph_of_ones_own_is_loaded_asked_and_fitted(page: Any, tmp_path: Path) -> None:
    facts = tmp_path / "my <b>family.tsv"
    people = [f"person {i}" for i in range(30)]
    lines = [f"{a}\tparent of\t{b}\n{b}\tchild of\t{a}\n" for a, b in itertools.pairwise(people)]
    facts.write_text("".join(lines))
    page.goto("/graphs")
    page.set_input_files("#file", facts)
    page.click("main button:has-text('Load')")
    page.wait_for_url(re.compile(r"/g/my-b-family"))
    assert "my <b>family" in page.inner_text("h1") and "58 facts" in page.inner_text(".lead")
    page.click("main button:has-text('Fit probabilities')")
    page.wait_for_selector("[data-job-state]:has-text('done')")
    page.wait_for_selector("main >> text=calibration error")
    assert "calibration error" in page.inner_text("main")
    page.goto("/graphs")
    page.click("[aria-label^='Remove my']")
    page.wait_for_selector("text=my <b>family", state="detached")


PAGES = (
    "/g/demo",
    "/g/demo/ask?head=Kenya&relation=borders&known=include",
    "/g/demo/question?head=?y&relation=borders&tail=?x&head=?y&relation=on+continent&tail=Africa",
    "/g/demo/question",
    "/g/demo/why?head=Kenya&relation=borders&tail=Tanzania",
    "/g/demo/entity?name=Kenya",
    "/g/demo/relation?name=borders",
    "/g/demo/missing",
    "/graphs",
    "/docs",
    "/g/demo/search?q=ken",
    "/g/none",
)


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_light_and_dark(chromium: Any, address: str, scheme: str, width: int) -> None:
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ModuleNotFoundError:
        browsers.refuse_or_skip("needs the extra `dev`: pip install -e .[dev]")
    # The checker is put into the page as a script, which the page's own policy forbids: here it may.
    view = {"width": width, "height": 800}
    context = chromium.new_context(base_url=address, color_scheme=scheme, viewport=view, bypass_csp=True)
    context.set_default_timeout(40_000)
    tab = context.new_page()
    found = []
    for path in PAGES:
        tab.goto(path)
        for violation in Axe().run(tab).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                places = [node["target"] for node in violation["nodes"]][:4]
                found.append((path, violation["id"], places))
    context.close()
    assert not found, found


def test_a_phone_shows_every_page_without_scrolling_sideways(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address, viewport={"width": 360, "height": 800}, is_mobile=True)
    context.set_default_timeout(40_000)
    tab = context.new_page()
    for path in PAGES:
        tab.goto(path)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360, path
    tab.goto("/g/demo/entity?name=Kenya")
    picture = tab.locator(".picture:visible")  # drawn for a phone: nothing of it lies outside
    assert picture.count() == 1 and "Nairobi" in picture.inner_text()
    assert picture.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 0
    context.close()


def test_long_names_widen_no_page(chromium: Any, address: str) -> None:
    address_like = "http://example.org/" + 150 * "x"
    names = [f"{20 * 'word '}{i}" for i in range(6)] + [f"{address_like}{i}" for i in range(6)]
    facts = "".join(f"{a}\t{r}\t{b}\n" for a, b in itertools.pairwise(names) for r in (names[0], address_like, "type"))
    context = chromium.new_context(base_url=address)
    context.set_default_timeout(40_000)
    multipart = {"file": {"name": "long.tsv", "mimeType": "text/plain", "buffer": facts.encode()}}
    graph = context.request.post("/v1/graphs", multipart=multipart).json()["id"]
    tab = context.new_page()
    one, other = quote(names[7]), quote(names[0])
    for width in (360, 1200):
        tab.set_viewport_size({"width": width, "height": 800})
        for path in (
            "",
            f"/entity?name={one}",
            f"/relation?name={quote(address_like)}",
            f"/ask?head={one}&relation={other}&known=include",
            f"/why?head={one}&relation={other}&tail={other}",
            "/search?q=word",
        ):
            tab.goto(f"/g/{graph}{path}")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, (width, path)
    context.request.delete(f"/v1/graphs/{graph}")
    context.close()


@pytest.mark.parametrize(
    "path",
    [
        "/g/demo/ask?head=Kenya&relation=borders&top=3",
        "/g/demo/question?head=?y&relation=borders&tail=Kenya&head=?y&relation=borders&tail=?x&new=true&top=2",
    ],
)
def test_every_control_can_be_reached_by_keyboard_and_shows_where_the_focus_is(page: Any, path: str) -> None:
    page.goto(path)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wanted = page.locator(
        "a[href], button:not([tabindex]), input:not([type=hidden]), select, summary, textarea"
    ).count()
    reached = set()
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement === document.body")
    assert len(reached) >= wanted


def test_the_page_answers_without_script(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    context.set_default_timeout(40_000)
    tab = context.new_page()
    tab.goto("/g/demo/ask?head=Kenya&relation=borders")
    tab.locator(".answers button[data-says=accepted]").first.click()
    tab.wait_for_url("**/ask?head=Kenya&relation=borders")
    assert tab.locator(".answers tr.accepted").count() == 1
    tab.locator(".answers button[data-says=accepted]").first.click()
    assert tab.locator(".answers tr.accepted").count() == 0
    context.close()
