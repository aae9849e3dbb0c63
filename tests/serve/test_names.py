"""Names are found as people type them."""

import numpy as np
import pytest

from gamma_kg.serve.names import NameSearch

NAMES = ["Kenya", "Mount Kenya", "Côte d'Ivoire", "Ken", "New Kent", "Uganda", "a\nb", "Kenyan shilling"]
WEIGHT = np.array([21, 3, 9, 1, 5, 14, 0, 2])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ken", ["Ken", "Kenya", "Kenyan shilling", "New Kent", "Mount Kenya"]),
        ("KENYA", ["Kenya", "Kenyan shilling", "Mount Kenya"]),
        ("cote", ["Côte d'Ivoire"]),
        ("ivoire", ["Côte d'Ivoire"]),
        ("kenia", ["Kenya"]),
        ("Ugnda", ["Uganda"]),
        ("a b", ["a\nb"]),
        ("zzz", []),
        ("\n", ["Kenya", "Uganda", "Côte d'Ivoire", "New Kent", "Mount Kenya", "Kenyan shilling", "Ken", "a\nb"]),
    ],
)
def test_whole_names_come_before_starts_before_words_before_parts_before_misspelt_ones(
    text: str, found: list[str]
) -> None:
    search = NameSearch(NAMES, WEIGHT)
    assert [NAMES[i] for i in search.find(text, 8)][: len(found)] == found
    if not found:
        assert search.find(text, 8) == []


def test_an_empty_vocabulary_finds_nothing() -> None:
    assert NameSearch([], np.zeros(0, dtype=np.int64)).find("x", 5) == []
