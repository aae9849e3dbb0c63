"""SPARQL → formula: SELECT with one variable, over patterns that form a tree.

rdflib parses; this file turns its algebra into `Pattern`s, and `tree.py` those into a formula. Entities and relations
are named as in the graph: <mother of>, "Ann" (an entity), wd:Q5, or with a declared PREFIX.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from gamma_kg.errors import DataError
from gamma_kg.logic.formula import Formula
from gamma_kg.logic.tree import Constant, Pattern, Variable, formula_of

_STRING = r'"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
# An opening < is a name if a > follows on the same line: comparisons have no place in these queries.
_TOKENS = re.compile(rf"(?P<string>{_STRING})|(?P<name><[^<>\n]*>)|(?P<comment>#[^\n]*)")
_PREFIX = re.compile(r"(?<![\w:?$-])([A-Za-z][\w.-]*)?:(?!:)")
_DECLARED = re.compile(r"\bPREFIX\s+([A-Za-z][\w.-]*)?\s*:", re.IGNORECASE)
_LEGAL = ":/?#[]@!$&'()*+,;=-._~"

EXAMPLE = "Names of the graph stand in angle brackets, as in SELECT ?x WHERE { ?x <part of> <Kenya> }"
INSTEAD = {
    "LeftJoin": "OPTIONAL can't be asked: leave it out, or ask for it in a query of its own",
    "Graph": "named graphs can't be asked: leave out GRAPH, the graph is the one given",
    "ServiceGraphPattern": "SERVICE can't be asked: the graph is the one given",
    "AggregateJoin": "aggregates (COUNT, GROUP BY …) can't be asked: write SELECT ?x and count the answers",
    "Group": "aggregates (COUNT, GROUP BY …) can't be asked: write SELECT ?x and count the answers",
    "Extend": "BIND and (… AS ?y) can't be asked: write the entity itself where the variable stands",
    "OrderBy": "ORDER BY can't be asked: answers come in the order of their probability, so leave it out",
    "SubSelect": "a SELECT inside a SELECT can't be asked: write its conditions into the outer WHERE",
}


@dataclass(frozen=True)
class Question:
    """What a SPARQL query asks, and how many answers it wants (None: not said)."""

    formula: Formula
    limit: int | None = None


def parse_sparql(text: str) -> Question:
    """The question that a SELECT asks; an error for what can't be asked says what to write instead."""
    try:
        return _parsed(text)
    except RecursionError:
        raise DataError("this question is too long or nested too deep to be read; ask it in parts") from None


def _parsed(text: str) -> Question:
    try:
        from rdflib.plugins.sparql.algebra import translateQuery
        from rdflib.plugins.sparql.parser import parseQuery
    except ImportError:
        raise DataError("SPARQL questions need rdflib: pip install 'gamma-kg[sparql]', or use the builder") from None
    cleaned = _TOKENS.sub(_legal_name, text)
    try:
        parsed = parseQuery(cleaned)
    except RecursionError:
        raise
    except Exception as error:  # pyparsing raises several kinds
        line, column = getattr(error, "line", ""), getattr(error, "column", 1)
        before, near = unquote(line[: column - 1]), unquote(line[column - 1 :]).strip()
        where = f"line {getattr(error, 'lineno', 1)} column {len(before) + 1}{f', near {near[:60]!r}' if near else ''}"
        raise DataError(f"this is no SPARQL query: {where}. {EXAMPLE}") from None
    bare = _TOKENS.sub(" ", cleaned)
    declared = {found or "" for found in _DECLARED.findall(bare)}
    # A prefix that is not declared is taken as it is written: graphs know such names.
    undeclared = {found or "" for found in _PREFIX.findall(bare)} - declared
    try:
        algebra = translateQuery(parsed, initNs={p: f"{p}:" if p else "" for p in undeclared})
    except RecursionError:
        raise
    except Exception as error:
        raise DataError(f"this SPARQL query can't be read: {error}") from None
    return _question(algebra.algebra if hasattr(algebra, "algebra") else algebra)


def _legal_name(match: re.Match[str]) -> str:
    """Names between < and > may hold blanks and other characters that an IRI may not."""
    name = match["name"]
    return match[0] if name is None else f"<{quote(name[1:-1], safe=_LEGAL)}>"


def _question(algebra: Any) -> Question:
    if algebra.name != "SelectQuery":
        kind = algebra.name.removesuffix("Query").upper()
        single = "; one fact alone: gamma explain GRAPH --head … --relation … --tail …" if kind == "ASK" else ""
        raise DataError(f"{kind} can't be asked: write SELECT ?x WHERE {{ … }}{single}")
    part, limit = algebra.p, None
    while part.name in ("Slice", "Distinct", "Reduced", "Project"):
        if part.name == "Slice":
            if part.start:
                raise DataError("OFFSET can't be asked: write a larger LIMIT")
            limit = part.length
        part = part.p
    variables = [str(variable) for variable in algebra.PV]
    pattern = _pattern(part)
    if len(variables) != 1:
        listed = ", ".join(f"?{name}" for name in variables) or "none"
        first = variables[0] if variables else "x"
        raise DataError(
            f"a question has one free variable, this one asks for {listed}: write SELECT ?{first} WHERE …; "
            "the best binding of every other variable comes with each answer"
        )
    return Question(formula_of(Variable(variables[0]), pattern), None if limit is None else int(limit))


def _pattern(part: Any) -> Pattern:
    """One group of conditions."""
    name = part.name
    if name == "GroupGraphPatternSub":  # rdflib leaves the inside of some filters as it was parsed
        from rdflib.plugins.sparql.algebra import translateGroupGraphPattern

        part = translateGroupGraphPattern(part)
        name = part.name
    if name == "BGP":
        return Pattern(triples=tuple((_term(s), _path(p), _term(o)) for s, p, o in part.triples))
    if name == "Join":
        return _pattern(part.p1) + _pattern(part.p2)
    if name == "Union":
        return Pattern(unions=(tuple(_branches(part)),))
    if name == "Minus":
        return _pattern(part.p1) + Pattern(denied=(_pattern(part.p2),))
    if name == "Filter":
        return _pattern(part.p) + _filter(part.expr)
    if name == "ToMultiSet" and getattr(part.p, "name", "") == "values":
        return _values(part.p.res)
    if name in ("ToMultiSet", "Project", "Slice", "Distinct"):
        name = "SubSelect"
    if name == "Extend" and part.p.name in ("AggregateJoin", "Extend"):
        return _pattern(part.p)
    raise DataError(INSTEAD.get(name, f"{name} can't be asked: use triples, UNION, MINUS and FILTER NOT EXISTS"))


def _branches(part: Any) -> list[Pattern]:
    if part.name == "Union":
        return [*_branches(part.p1), *_branches(part.p2)]
    return [_pattern(part)]


def _values(rows: list[dict[Any, Any]]) -> Pattern:
    names = {str(variable) for row in rows for variable in row}
    if len(names) != 1:
        raise DataError("VALUES can be asked with one variable at a time: VALUES ?y { <a> <b> }")
    return Pattern(values=((Variable(names.pop()), tuple(_constant(term) for row in rows for term in row.values())),))


def _filter(expression: Any) -> Pattern:
    kind = getattr(expression, "name", "")
    if kind == "ConditionalAndExpression":
        found = _filter(expression.expr)
        for other in expression.other:
            found = found + _filter(other)
        return found
    if kind == "Builtin_NOTEXISTS":
        return Pattern(denied=(_pattern(expression.graph),))
    if kind == "Builtin_EXISTS":
        return _pattern(expression.graph)
    if kind == "RelationalExpression" and expression.op in _COMPARISONS:
        compared = _compared(expression)
        if compared is not None:
            return compared
    raise DataError(
        "this FILTER can't be asked: FILTER NOT EXISTS { … }, FILTER EXISTS { … }, FILTER(?x != <name>), "
        "FILTER(?x IN (<name>, <name>)) and FILTER(?x NOT IN (<name>)) can, and && between them"
    )


# Comparisons of a variable with names, and whether it is one of them.
_COMPARISONS = {"=": True, "IN": True, "!=": False, "NOT IN": False}


def _compared(expression: Any) -> Pattern | None:
    """What a variable may be or not be; None for any other comparison."""
    from rdflib.term import Identifier
    from rdflib.term import Variable as RdfVariable

    one, others = expression.expr, expression.other
    if expression.op in ("=", "!="):
        one, others = (others, [one]) if isinstance(others, RdfVariable) else (one, [others])
    if not isinstance(others, list) or not all(isinstance(term, Identifier) for term in (one, *others)):
        return None  # an empty list, or a term that is reckoned first, as STRLEN(?x) is
    variable, names = _term(one), [_term(term) for term in others]
    if not isinstance(variable, Variable) or not all(isinstance(name, Constant) for name in names):
        return None
    chosen = Pattern(values=((variable, tuple(name for name in names if isinstance(name, Constant))),))
    return chosen if _COMPARISONS[expression.op] else Pattern(denied=(chosen,))


def _term(term: Any) -> Variable | Constant:
    from rdflib.term import BNode
    from rdflib.term import Variable as RdfVariable

    if isinstance(term, RdfVariable):
        return Variable(str(term))
    if isinstance(term, BNode):
        return Variable(f"_:{term}", is_shown=False)
    return _constant(term)


def _constant(term: Any) -> Constant:
    return Constant(unquote(str(term)))


def _path(path: Any) -> Any:
    """A path as nested tuples: ("name", r), ("inverse", path), ("sequence", paths…) or ("either", paths…)."""
    from rdflib.paths import AlternativePath, InvPath, MulPath, SequencePath
    from rdflib.term import URIRef

    if isinstance(path, URIRef):
        return "name", unquote(str(path))
    if isinstance(path, InvPath):
        return "inverse", _path(path.arg)
    if isinstance(path, SequencePath):
        return "sequence", *map(_path, path.args)
    if isinstance(path, AlternativePath):
        return "either", *map(_path, path.args)
    if isinstance(path, MulPath):
        raise DataError(
            "paths of any length (* + ?) can't be asked: write the steps out, as p/p, or join them by UNION"
        )
    raise DataError("a variable or a negated path can't stand for a relation: name the relation")
