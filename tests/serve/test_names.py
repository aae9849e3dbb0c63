"""Names are found as people type them."""

from pathlib import Path

import numpy as np
import pytest

from gamma_kg import KnowledgeGraph
from gamma_kg.serve.facts import best_connected
from gamma_kg.serve.names import LargeNameSearch, NameSearch

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


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    from gamma_kg.graph.store.index import index_files

    folder: Path = tmp_path_factory.mktemp("names")
    facts = "".join(f"{name}\tr\tUganda\n" for name in NAMES if "\n" not in name)
    (folder / "facts.tsv").write_text(facts, "utf-8")
    index_files([folder / "facts.tsv"], folder / "facts.gamma")
    return KnowledgeGraph.from_file(folder / "facts.gamma")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ken", ["Ken", "Kenya", "Kenyan shilling", "Mount Kenya", "New Kent"]),
        ("Kenyan s", ["Kenyan shilling"]),
        ("ivoire", ["Côte d'Ivoire"]),
        ("Knya", ["Kenya"]),
        ("kneya", ["Kenya"]),
        ("Xganda", ["Uganda"]),  # the first letter is wrong: no neighbour in the alphabet
        ("mount kenia", ["Mount Kenya"]),
        ("zzz", []),
    ],
)
def test_names_on_disk_are_found_from_their_start_misspelt_and_by_any_part(
    stored: KnowledgeGraph, text: str, found: list[str]
) -> None:
    names = [stored.entities[i] for i in LargeNameSearch(stored.entities).find(text, 5)]
    assert names[: len(found)] == found and bool(names) == bool(found)


def test_a_part_that_runs_over_into_the_next_name_is_no_match(stored: KnowledgeGraph) -> None:
    first, second = stored.entities[0], stored.entities[1]
    assert stored.entities.holding(first[-2:] + second[:2]) == []  # type: ignore[attr-defined]


def test_before_anything_is_typed_names_on_disk_come_by_their_facts(
    stored: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamma_kg.serve.facts.ENTITIES_AT_ONCE", 2)  # the best of each part are compared
    first = best_connected(stored, 3)
    assert stored.entities[first[0]] == "Uganda" and len(set(first)) == 3
    assert LargeNameSearch(stored.entities, first).find(" ", 2) == first[:2]
