"""Formulas, the nested lists of BetaE, and the names of shapes."""

import pytest

from gamma_kg import DataError, KnowledgeGraph, UnknownNameError
from gamma_kg.logic.ask import understood
from gamma_kg.logic.formula import Along, And, Entity, Not, Or, check_bounded, entity, height, resolve, walk
from gamma_kg.logic.lists import NEGATED, POSITIVE, SHAPES, from_lists, shape_of, to_lists


def test_the_fourteen_shapes_come_back_from_their_lists() -> None:
    assert len(SHAPES) == 14
    for shape, query in SHAPES.items():
        formula = from_lists(query)
        assert to_lists(formula) == query
        assert shape_of(formula) == shape


def test_shapes_without_negation_are_the_nine_of_the_literature() -> None:
    assert POSITIVE == ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up")
    assert NEGATED == ("2in", "3in", "inp", "pin", "pni")


@pytest.mark.parametrize(
    ("query", "formula"),
    [
        ([7, [0, 5]], Along(5, Along(0, Entity(7)))),
        ([[1, [0]], [2, [3]]], And((Along(0, Entity(1)), Along(3, Entity(2))))),
        ([[1, [0]], [2, [3]], [-1]], Or((Along(0, Entity(1)), Along(3, Entity(2))))),
        ([[1, [0, -2]], [2, [3]]], And((Not(Along(0, Entity(1))), Along(3, Entity(2))))),
        ([[[1, [0]], [2, [3]], [-1]], [4]], Along(4, Or((Along(0, Entity(1)), Along(3, Entity(2)))))),
        (((1, (0,)), (2, (3, -2))), And((Along(0, Entity(1)), Not(Along(3, Entity(2)))))),
    ],
)
def test_nested_lists_mean_what_betae_says(query: object, formula: object) -> None:
    assert from_lists(query) == formula


@pytest.mark.parametrize("query", [[], [1], 5, "e", [1, []], [[1, [0]]], [[1, [0]], [-1]], [[1, [0]], 3], [1, [[0]]]])
def test_what_is_no_query_is_refused_with_its_place(query: object) -> None:
    with pytest.raises(DataError, match="is no chain"):
        from_lists(query)


def test_a_list_nested_without_end_is_refused() -> None:
    query: list[object] = [1, [0]]
    for _ in range(2000):
        query = [query, [0]]
    with pytest.raises(DataError, match="is no chain"):
        from_lists(query)


def test_a_chain_without_end_is_refused_however_it_is_written() -> None:
    for question in (["e", ["r"] * 400], entity("e").along(*["r"] * 400)):
        with pytest.raises(DataError, match="100 steps deep"):
            understood(question)


def test_the_builder_makes_the_same_trees(family: KnowledgeGraph) -> None:
    question = entity("Ann").along("mother of") & entity("Dan").along("father of") & ~entity("Bob").along("sibling of")
    assert isinstance(question, And) and len(question.members) == 3
    assert shape_of(question) == "3in"
    assert entity("Bob").against("mother of") == entity("Bob").along("^mother of")
    found = resolve(entity("Bob").against("mother of"), family)
    assert found == Along(family.relation_id("mother of") + family.num_relations, Entity(family.entity_id("Bob")))


def test_names_of_variables_do_not_make_formulas_differ() -> None:
    assert entity("a").along("r").called("y") == entity("a").along("r")
    assert [part.name for part in walk(entity("a").along("r").called("y").along("s"))] == ["", "y", ""]


def test_height_counts_relations_one_after_the_other() -> None:
    assert {shape: height(from_lists(query)) for shape, query in SHAPES.items()} == {
        **dict.fromkeys(("1p", "2i", "3i", "2u", "2in", "3in"), 1),
        **dict.fromkeys(("2p", "pi", "ip", "up", "inp", "pin", "pni"), 2),
        "3p": 3,
    }


def test_unknown_names_and_ids_are_told(family: KnowledgeGraph) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'Ann'"):
        resolve(entity("Anne").along("mother of"), family)
    with pytest.raises(UnknownNameError, match="ids of this graph lie in 0"):
        resolve(entity(500).along("mother of"), family)
    with pytest.raises(UnknownNameError, match=r"0\.\.9, the query has 10"):
        resolve(entity(0).along(10), family)


def test_a_question_that_only_denies_is_refused() -> None:
    for formula in (~entity("a").along("r"), entity("a").along("r") | ~entity("b").along("r")):
        with pytest.raises(DataError, match="nothing but a negation"):
            check_bounded(formula)
    check_bounded(entity("a").along("r") & ~entity("b").along("r"))
