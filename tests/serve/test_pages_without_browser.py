"""What the pages say to a person who made a slip: beside the form, with a way on."""

from __future__ import annotations

import time

import pytest
from clients import MakeClient
from fastapi.testclient import TestClient

from gamma_kg.serve.pages.rendering import section_of, sentence

PAGE = {"Accept": "text/html"}


def test_a_misspelt_name_is_answered_with_links_that_ask_the_repaired_question(client: TestClient) -> None:
    page = client.get("/g/family/ask", params={"head": "Anne", "relation": "mother of"}, headers=PAGE)
    assert page.status_code == 404 and "is named &#39;Anne&#39;" in page.text
    assert 'href="/g/family/ask?head=Ann&amp;relation=mother+of"' in page.text and "gamma describe" not in page.text
    page = client.get("/g/family/ask", params={"head": "Ann", "relation": "mothr of"}, headers=PAGE)
    assert 'href="/g/family/ask?head=Ann&amp;relation=mother+of"' in page.text


def test_an_entity_that_is_not_there_is_answered_with_names_that_resemble_it(client: TestClient) -> None:
    page = client.get("/g/family/entity", params={"name": "Anne<b>"}, headers=PAGE)
    assert page.status_code == 404 and "No entity is named &#39;Anne&lt;b&gt;&#39;" in page.text
    assert 'href="/g/family/entity?name=Ann"' in client.get("/g/family/entity?name=Anne", headers=PAGE).text


def test_a_file_that_is_no_graph_is_refused_beside_the_form(client: TestClient) -> None:
    page = client.post("/graphs", files={"file": ("facts.tsv", b"one column only")}, headers=PAGE)
    assert page.status_code == 400 and 'class="complaint"' in page.text and 'type="file"' in page.text


def test_missing_facts_of_nobody_are_refused_beside_the_form_with_what_was_typed(client: TestClient) -> None:
    page = client.post("/g/family/missing", data={"entity": "Nobody <b>"}, headers=PAGE)
    assert page.status_code == 404 and 'class="complaint"' in page.text
    assert 'value="Nobody &lt;b&gt;"' in page.text and "Nobody <b>" not in page.text


def test_a_page_that_can_not_be_shown_leads_back_and_a_late_one_to_the_next_try(make_client: MakeClient) -> None:
    fact = {"head": "Ann", "relation": "mothr of", "tail": "Bob"}
    page = make_client().get("/g/family/why", params=fact, headers=PAGE)
    assert page.status_code == 404 and "did you mean &#39;mother of&#39;" in page.text
    assert 'href="/g/family">Back to family' in page.text and "gamma describe" not in page.text
    assert "Try again" not in page.text
    late = make_client(seconds=1e-6).get("/g/family/why?head=Ann&relation=mother+of&tail=Bob", headers=PAGE)
    assert late.status_code == 503
    assert 'href="/g/family/why?head=Ann&amp;relation=mother+of&amp;tail=Bob">Try again' in late.text


@pytest.mark.parametrize(
    ("path", "section"),
    [("/g/demo", ""), ("/g/demo/entity", ""), ("/g/demo/why", "ask"), ("/g/ask/jobs/1", "missing"), ("/docs", "docs")],
)
def test_every_page_belongs_to_an_entry_of_the_menu(path: str, section: str) -> None:
    assert section_of(path) == section


def test_the_menu_marks_where_one_is(client: TestClient) -> None:
    assert '/missing" aria-current="page">' in client.get("/g/family/missing", headers=PAGE).text


def test_a_relation_shows_its_facts_by_head_a_page_at_a_time(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamma_kg.serve.pages.looking.FACTS_A_PAGE", 30)
    path, shown = "/g/hostile/relation?name=links+%3C/svg%3E", 0
    for offset in (0, 30):
        page = client.get(f"{path}&offset={offset}", headers=PAGE).text
        rows = page.partition("<tbody>")[2].partition("</tbody>")[0]
        shown += rows.count('class="entity"') - rows.count("<tr>")  # a name a fact, and one more a head
        assert rows.count("<tr>") <= 7 and "of 42" in page
        assert ("Later" in page, "Earlier" in page) == (offset == 0, offset > 0)
    assert shown == 42


def test_a_search_that_finds_nothing_says_why_and_offers_one_without_reasons(client: TestClient) -> None:
    wish = {"entity": "Ann", "relation": "mother of", "min_cases": "1000"}
    job = client.post("/g/family/missing", data=wish, headers=PAGE, follow_redirects=False).headers["location"]
    for _ in range(600):
        page = client.get(job, headers=PAGE).text
        if 'data-state="done"' in page:
            break
        time.sleep(0.05)
    form = page.partition("Nothing to propose")[2].partition("</form>")[0]
    assert "1000 cases" in form and 'name="entity" value="Ann"' in form and 'name="min_cases" value="0"' in form


@pytest.mark.parametrize(
    ("text", "shown"),
    [("no answer within 3 s", "No answer within 3 s"), ("my.tsv: it is empty", "my.tsv: it is empty")],
)
def test_a_sentence_begins_with_a_capital_unless_a_name_stands_there(text: str, shown: str) -> None:
    assert sentence(text) == shown
