"""SPARQL into formulas, and the errors for what can't be asked."""

import pytest

from gamma_kg import DataError
from gamma_kg.logic.formula import And, Everything, Formula, Not, Or, entity, walk
from gamma_kg.logic.sparql import parse_sparql

A, B = entity("A"), entity("B")


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("SELECT ?x WHERE { <A> <p> ?x }", A.along("p")),
        ("SELECT ?x WHERE { ?x <p> <A> }", A.along("^p")),
        ("select ?x { <A> <p>/^<q> ?x } LIMIT 3", A.along("p", "^q")),
        ("SELECT ?x { <A> ^(<p>/<q>) ?x }", A.along("^q", "^p")),
        ("SELECT ?x { <A> <p>|<q> ?x }", A.along("p") | A.along("q")),
        ("SELECT ?x { <A> <p> ?y . ?y <q> ?x }", A.along("p", "q")),
        ("SELECT ?x { ?y <q> ?x ; ^<p> <A> }", A.along("p", "q")),
        ("SELECT ?x { ?x <p> <A> ; <q> <B> }", A.along("^p") & B.along("^q")),
        ("SELECT ?x { { ?x <p> <A> } UNION { ?x <q> <B> } }", A.along("^p") | B.along("^q")),
        (
            "SELECT ?x { ?y <r> ?x { ?y <p> <A> } UNION { <B> <q> ?y } UNION { ?y <p> <B> } }",
            (A.along("^p") | B.along("q") | B.along("^p")).along("r"),
        ),
        ("SELECT ?x { ?x <p> <A> FILTER NOT EXISTS { ?x <q> <B> } }", A.along("^p") & ~B.along("^q")),
        ("SELECT ?x { ?x <p> <A> MINUS { ?x <q> ?z . ?z <r> <B> } }", A.along("^p") & ~B.along("^r", "^q")),
        ("SELECT ?x { ?x <p> <A> FILTER EXISTS { ?x <q> <B> } }", A.along("^p") & B.along("^q")),
        ("SELECT ?x { ?x <p> <A> FILTER(?x != <B>) }", A.along("^p") & ~B),
        ("SELECT ?x { ?y <p> ?x FILTER(<A> = ?y) }", A.along("p")),
        ("SELECT ?x { ?y <p> ?x FILTER(?y IN (<A>, <B>)) }", (A | B).along("p")),
        ("SELECT ?x { ?x <p> <A> FILTER(?x NOT IN (<A>, <B>)) }", A.along("^p") & ~(A | B)),
        ("SELECT ?x { VALUES ?y { <A> <B> } ?y <p> ?x }", (A | B).along("p")),
        ("SELECT ?x { ?x <p> [ <q> <A> ] }", A.along("^q", "^p")),
        ("SELECT * { ?x <p> <A> }", A.along("^p")),
        ("SELECT ?x { ?x <p> <A> . ?x <q> ?y }", And((A.along("^p"), Everything().along("^q")))),
        ("SELECT ?x { <mother of Ann> <is a (kind of)> ?x }", entity("mother of Ann").along("is a (kind of)")),
        ('SELECT ?x { "Ann\'s <b c>" <p> ?x }', entity("Ann's <b c>").along("p")),
        ("SELECT ?x { wd:Q5 wdt:P31 ?x }", entity("wd:Q5").along("wdt:P31")),
        ("SELECT ?x { :A :p ?x }", A.along("p")),
        ("PREFIX e: <http://e.org/> SELECT ?x { e:A e:p ?x }", entity("http://e.org/A").along("http://e.org/p")),
        ("SELECT ?x { <A%20b> <p> ?x # <not this>\n }", entity("A%20b").along("p")),
    ],
)
def test_sparql_becomes_the_formula_it_means(text: str, formula: Formula) -> None:
    assert parse_sparql(text).formula == formula


def test_a_union_that_ties_two_variables_is_asked_branch_by_branch() -> None:
    found = parse_sparql("SELECT ?x { { ?x <p> ?d } UNION { ?x <q> ?d } ?d <r> <A> }").formula
    assert found == Or((A.along("^r", "^p"), A.along("^r", "^q")))


def _tied(count: int) -> str:
    """Unions that each tie two variables: every one doubles the cases."""
    unions = " ".join(f"{{ ?y{i} <p> ?y{i + 1} }} UNION {{ ?y{i} <q> ?y{i + 1} }}" for i in range(count))
    return f"SELECT ?x {{ ?x <p> ?y0 . {unions} ?y{count} <r> <A> }}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (_tied(12), "more than 500 cases"),
        (f"SELECT ?x {{ <A> {'/'.join(['(<p>|<q>)'] * 14)} ?x }}", "at most 10,000 parts"),
        (f"SELECT ?x {{ <A> {'/'.join(['<p>'] * 400)} ?x }}", "100 steps deep"),
        ("SELECT ?x { <A> " + "^(" * 300 + "<p>" + ")" * 300 + " ?x }", "nested too deep"),
        ("SELECT ?x {" + "{" * 300 + " <A> <p> ?x " + "}" * 300 + "}", "nested too deep"),
        ("SELECT ?x {" + " UNION ".join(["{ <A> <p> ?x }"] * 1500) + "}", "nested too deep"),
    ],
)  # fmt: skip
def test_a_short_text_that_means_a_huge_question_is_refused(text: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        parse_sparql(text)


def test_a_few_unions_that_tie_two_variables_are_asked() -> None:
    assert isinstance(parse_sparql(_tied(5)).formula, Or)


def test_variables_keep_their_names_and_the_limit_is_read() -> None:
    question = parse_sparql("SELECT DISTINCT ?drug WHERE { ?drug <treats> ?illness . <X> <causes> ?illness } LIMIT 7")
    assert question.limit == 7
    assert [part.name for part in walk(question.formula)] == ["drug", "illness", ""]


def test_several_denials_hold_together() -> None:
    found = parse_sparql(
        "SELECT ?x { ?x <p> ?y . ?y <q> <A> MINUS { ?y <r> <B> } FILTER NOT EXISTS { ?x <s> ?z } FILTER(?x != <A>) }"
    ).formula
    inner = And((A.along("^q"), Not(B.along("^r"))))
    assert found == And((inner.along("^p"), Not(Everything().along("^s")), Not(A)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT ?x { ?x <p> ?y . ?y <q> ?z . ?z <r> ?x }", r"form a cycle through \?z and \?x.*Leave one condition"),
        ("SELECT ?x { ?x <p> ?y . ?x <q> ?y }", "form a cycle"),
        ("SELECT ?x { ?x <p> ?x }", "form a cycle"),
        ("SELECT ?x ?y { ?x <p> ?y }", r"one free variable, this one asks for \?x, \?y: write SELECT \?x"),
        ("SELECT (COUNT(?x) AS ?n) { ?x <p> <A> }", r"aggregates.*write SELECT \?x and count"),
        ("SELECT ?y (COUNT(?x) AS ?n) { ?x <p> ?y } GROUP BY ?y", "aggregates"),
        ("SELECT ?x { ?x <p> <A> } ORDER BY ?x", "ORDER BY.*leave it out"),
        ("SELECT ?x { ?x <p> <A> } OFFSET 3", "OFFSET.*larger LIMIT"),
        ("SELECT ?x { ?x <p> <A> OPTIONAL { ?x <q> ?y } }", "OPTIONAL.*leave it out"),
        ("SELECT ?x { ?x <p> <A> BIND(<B> AS ?y) }", "BIND.*write the entity itself"),
        ("SELECT ?x { ?x <p>+ <A> }", "any length.*write the steps out"),
        ("SELECT ?x { ?x ?p <A> }", "name the relation"),
        ("SELECT ?x { ?x <p> <A> FILTER(?x > 5) }", "this FILTER can't be asked"),
        ("SELECT ?x { ?x <p> ?y . ?y <q> <A> FILTER(?x = ?y) }", "this FILTER can't be asked"),
        ("SELECT ?x { ?x <p> <A> FILTER(<A> IN (?x, <B>)) }", "this FILTER can't be asked"),
        ("SELECT ?x { ?x <p> <A> FILTER(?x IN ()) }", "this FILTER can't be asked"),
        ("SELECT ?x { ?x <p> <A> FILTER(STRLEN(?x) = 5) }", r"this FILTER can.t be asked.*IN \(<name>, <name>"),
        ("SELECT ?x { ?x <p> ?y . ?y <q> <A> MINUS { ?x <r> ?y } }", r"shares \?x and \?y: use another variable"),
        ("SELECT ?x { ?x <p> <A> . ?z <p> <B> }", r"do not hang together with \?x"),
        ("SELECT ?x { ?x <p> <A> . <B> <p> <A> }", "has no variable"),
        ("SELECT ?x { ?y <p> <A> }", r"\?x is asked for, but no condition mentions it"),
        ("SELECT ?x { MINUS { ?x <p> <A> } }", "nothing but a negation"),
        ("SELECT ?x { { SELECT ?x { ?x <p> <A> } } }", "SELECT inside a SELECT"),
        ("ASK { <A> <p> <B> }", r"ASK can't be asked: write SELECT \?x"),
        ("CONSTRUCT { ?x <p> <B> } WHERE { ?x <p> <A> }", "CONSTRUCT can't be asked"),
        ("SELECT ?x { GRAPH <g> { ?x <p> <A> } }", "leave out GRAPH"),
        ("SELECT ?x WHERE { ?x <p> }", "no SPARQL query: line 1"),
        ("who is it", "no SPARQL query"),
        ("SELECT ?x { ?x p A }", r"line 1 column 13, near '\?x p A }'\. Names .* stand in angle brackets"),
        ("SELECT ?x { ?x <a b> <c d> . ?x p A }", r"line 1 column 30, near '\?x p A }'"),
    ],
)
def test_what_cannot_be_asked_says_what_to_write_instead(text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        parse_sparql(text)
