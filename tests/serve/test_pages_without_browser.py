"""What the pages say to a person who made a slip: beside the form, with a way on."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from gamma_kg.serve.pages.rendering import section_of

PAGE = {"Accept": "text/html"}


def test_a_misspelt_name_is_answered_with_links_that_ask_the_repaired_question(client: TestClient) -> None:
    page = client.get("/g/family/ask", params={"head": "Anne", "relation": "mother of"}, headers=PAGE)
    assert page.status_code == 404 and "is named &#39;Anne&#39;" in page.text
    assert 'href="/g/family/ask?head=Ann&amp;relation=mother+of"' in page.text and "gamma describe" not in page.text
    page = client.get("/g/family/ask", params={"head": "Ann", "relation": "mothr of"}, headers=PAGE)
    assert 'href="/g/family/ask?head=Ann&amp;relation=mother+of"' in page.text


def test_an_entity_that_is_not_there_is_answered_with_names_that_resemble_it(client: TestClient) -> None:
    page = client.get("/g/family/entity", params={"name": "Anne<b>"}, headers=PAGE)
    assert page.status_code == 404 and "no entity is named &#39;Anne&lt;b&gt;&#39;" in page.text
    assert 'href="/g/family/entity?name=Ann"' in client.get("/g/family/entity?name=Anne", headers=PAGE).text


def test_a_file_that_is_no_graph_is_refused_beside_the_form(client: TestClient) -> None:
    page = client.post("/graphs", files={"file": ("facts.tsv", b"one column only")}, headers=PAGE)
    assert page.status_code == 400 and 'class="complaint"' in page.text and 'type="file"' in page.text


def test_missing_facts_of_nobody_are_refused_beside_the_form_with_what_was_typed(client: TestClient) -> None:
    page = client.post("/g/family/missing", data={"entity": "Nobody <b>"}, headers=PAGE)
    assert page.status_code == 404 and 'class="complaint"' in page.text
    assert 'value="Nobody &lt;b&gt;"' in page.text and "Nobody <b>" not in page.text


@pytest.mark.parametrize(
    ("path", "section"),
    [("/g/demo", ""), ("/g/demo/entity", ""), ("/g/demo/why", "ask"), ("/g/ask/jobs/1", "missing"), ("/docs", "docs")],
)
def test_every_page_belongs_to_an_entry_of_the_menu(path: str, section: str) -> None:
    assert section_of(path) == section


def test_the_menu_marks_where_one_is(client: TestClient) -> None:
    assert '/missing" aria-current="page">' in client.get("/g/family/missing", headers=PAGE).text
