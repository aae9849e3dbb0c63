from __future__ import annotations

import pytest

from gamma_kg.data import vocabulary
from gamma_kg.data.vocabulary import Vocabulary

CITIES = ["Zürich", "Bern", "berlin", "Basel", "ZÜRIBERG", "Zug", "東京", "Berne"]


def test_names_are_found_by_their_beginning_in_any_case() -> None:
    names = Vocabulary(CITIES)
    assert names.search("zür") == ["ZÜRIBERG", "Zürich"]
    assert names.search("BER") == ["berlin", "Bern", "Berne"]
    assert names.search("ber", limit=2) == ["berlin", "Bern"]
    assert names.search("東") == ["東京"]
    assert names.search("x") == []
    assert len(names.search("", limit=100)) == len(CITIES)


@pytest.mark.parametrize("suggest_from", [20_000, 2])
def test_a_slip_of_the_pen_finds_the_name_in_small_and_large_vocabularies(
    monkeypatch: pytest.MonkeyPatch, suggest_from: int
) -> None:
    monkeypatch.setattr(vocabulary, "SUGGEST_FROM", suggest_from)
    assert Vocabulary(CITIES).nearest("Züirch")[0] == "Zürich"
    assert "Basel" in Vocabulary(CITIES).nearest("bassel")
