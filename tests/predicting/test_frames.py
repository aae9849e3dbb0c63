"""Many questions from Python: lists of heads, frames of questions, answers that a notebook shows."""

from __future__ import annotations

import pandas
import polars as pl
import pytest

from gamma_kg import DataError, Gamma, KnowledgeGraph


def test_a_list_of_heads_gives_a_list_of_answers(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    found = small_gamma.predict(family, head=["Ann", "Bob"], relation="mother of", top_k=2)
    assert found == [small_gamma.predict(family, head=head, relation="mother of", top_k=2) for head in ("Ann", "Bob")]
    assert small_gamma.predict(family, head=[], relation="mother of") == []
    with pytest.raises(DataError, match="give a list for one of"):
        small_gamma.predict(family, head=["Ann"], relation=["mother of"])


@pytest.mark.parametrize("library", [pl, pandas])
def test_a_frame_of_questions_gives_a_frame_of_answers(family: KnowledgeGraph, small_gamma: Gamma, library) -> None:
    questions = {
        "head": ["Ann", None, "Ann"],
        "relation": ["mother of", "father of", "?"],
        "tail": ["", "Finn", "Dan"],
        "case": [7, 8, 9],
    }
    answers = small_gamma.predict_frame(family, library.DataFrame(questions), top_k=2)
    assert isinstance(answers, library.DataFrame)
    rows = answers.to_dicts() if library is pl else answers.to_dict("records")
    assert [row["asked"] for row in rows] == ["tail", "tail", "head", "head", "relation", "relation"]
    assert [row["rank"] for row in rows] == [1, 2] * 3
    assert [(row["question"], row["case"]) for row in rows[::2]] == [(0, 7), (1, 8), (2, 9)]
    first = small_gamma.predict(family, head="Ann", relation="mother of", top_k=1)[0]
    assert rows[0]["tail"] == first.name and rows[0]["probability"] == pytest.approx(first.probability, abs=1e-5)


def test_two_columns_are_enough(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    frame = pl.DataFrame({"relation": ["mother of"], "tail": ["Dan"]})
    assert small_gamma.predict_frame(family, frame, top_k=1)["asked"].to_list() == ["head"]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pl.DataFrame({"head": ["Ann"]}), "needs two of the columns"),
        (pl.DataFrame({"head": ["Ann"], "relation": [None]}), "row 0 of the data frame: exactly one of head, relation"),
        ({"head": ["Ann"]}, "expected a polars or pandas data frame, got dict"),
    ],
)
def test_frames_that_ask_nothing_are_refused(family: KnowledgeGraph, small_gamma: Gamma, frame, words: str) -> None:
    with pytest.raises(DataError, match=words):
        small_gamma.predict_frame(family, frame)


def test_answers_show_themselves_without_markup_of_names(small_gamma: Gamma) -> None:
    kg = KnowledgeGraph.from_triples([("<b>a</b>", "r", "b"), ("b", "r", "<i>c</i>")])
    found = small_gamma.predict(kg, head="<b>a</b>", relation="r")
    html = found._repr_html_()
    assert "<b>" not in html and "<i>" not in html and "&lt;b&gt;" in html
    assert found.to_dataframe()["name"].to_list() == [p.name for p in found]
    why = small_gamma.explain(kg, head="<b>a</b>", relation="r", tail="<i>c</i>")
    assert why._repr_svg_().startswith("<svg") and "<b>" not in why._repr_html_() and "<i>" not in why._repr_html_()
