"""Conditions line by line into formulas, and into the SPARQL that means the same."""

import pytest

from gamma_kg import DataError
from gamma_kg.logic.conditions import Condition, formula_of_conditions, sparql_of_conditions
from gamma_kg.logic.formula import Formula, entity, walk
from gamma_kg.logic.sparql import parse_sparql

A, B = entity("A"), entity("B")


def lines(text: str) -> list[Condition]:
    """One condition a line: join head relation tail."""
    found = []
    for line in text.strip().splitlines():
        join, head, relation, tail = line.split()
        found.append(Condition(head, relation, tail, join))  # type: ignore[arg-type]
    return found


CASES = [
    ("and A p ?x", A.along("p")),
    ("and ?x p ?y \n and ?y q A", A.along("^q", "^p")),
    ("and ?x p A \n or ?x q B", A.along("^p") | B.along("^q")),
    ("and ?y r ?x \n and ?y p A \n or B q ?y \n or ?y p B", (A.along("^p") | B.along("q") | B.along("^p")).along("r")),
    ("and ?x p A \n not ?x q B", A.along("^p") & ~B.along("^q")),
    ("not ?x q B \n and ?x p A", A.along("^p") & ~B.along("^q")),
    # What goes on about a variable of a denial is denied with it; so in an alternative.
    ("and ?x p A \n not ?x q ?z \n and ?z r B", A.along("^p") & ~B.along("^r", "^q")),
    ("and ?x p ?y \n or ?x q B \n and ?y r A", A.along("^r", "^p") | B.along("^q")),
    ("and ?x p A \n not ?x q B \n or ?x r B", A.along("^p") & ~(B.along("^q") | B.along("^r"))),
    # Both branches know ?d, so what is said of it holds for both.
    ("and ?x p ?d \n or ?x q ?d \n and ?d r A", A.along("^r", "^p") | A.along("^r", "^q")),
]


@pytest.mark.parametrize(("text", "formula"), CASES)
def test_lines_become_the_formula_they_mean(text: str, formula: Formula) -> None:
    assert formula_of_conditions(lines(text)) == formula


@pytest.mark.parametrize("text", [text for text, _ in CASES])
def test_the_sparql_that_is_shown_means_the_same(text: str) -> None:
    sparql = sparql_of_conditions(lines(text))
    assert sparql is not None and parse_sparql(sparql).formula == formula_of_conditions(lines(text))


def test_any_variable_can_be_asked_for_and_the_others_keep_their_names() -> None:
    found = formula_of_conditions(
        [Condition("?drug", "treats", "?illness"), Condition("X", "has", "?illness")], "?drug"
    )
    assert found == entity("X").along("has", "^treats")
    assert [part.name for part in walk(found)] == ["drug", "illness", ""]


def test_a_name_that_sparql_cannot_write_still_asks() -> None:
    odd = [Condition("a <b>", "p", "?x")]
    assert sparql_of_conditions(odd) is None
    assert formula_of_conditions(odd) == entity("a <b>").along("p")


@pytest.mark.parametrize(
    ("conditions", "find", "words"),
    [
        ([], "?x", "at least one condition"),
        ([Condition("?x", "p", "A", "or")], "?x", "nothing above it"),
        ([Condition("?x", "p", "A")], "A", "is a variable"),
        ([Condition("?my x", "p", "A")], "?x", "a word"),
        ([Condition("?x", "p", "A", "not")], "?x", "nothing but a negation"),
        ([Condition("?y", "p", "A")], "?x", "no condition mentions it"),
        ([Condition("?x", "p", "?y"), Condition("?y", "q", "?x")], "?x", "cycle"),
        ([Condition("?x", "p", "A"), Condition("?y", "q", "B")], "?x", "hang together"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(conditions: list[Condition], find: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        formula_of_conditions(conditions, find)
