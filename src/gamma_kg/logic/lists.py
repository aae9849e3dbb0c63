"""Queries as the nested lists of the BetaE files, and the 14 shapes that the literature measures.

    [e, [r1, r2]]            a chain: from entity e along r1, then r2
    [chain, chain]           an intersection
    [chain, chain, [-1]]     a union
    [e, [r, -2]]             the chain, negated; also inside an intersection that is projected further
    [[chain, chain], [r]]    the result of the inner list, along r

Entities and relations are ids (a relation's inverse is r + R) or names (^name).
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import Repr
from typing import Any

from gamma_kg.errors import DataError
from gamma_kg.logic.formula import Along, And, Entity, Everything, Formula, Name, Not, Or, check_size, has_negation

UNION, NEGATION = -1, -2
# Deeper nesting than any question needs; it keeps a hostile file from exhausting the stack.
MAX_DEPTH = 40
_SHORT = Repr()

# Shape → a query of it in names: e for entities, r for relations.
SHAPES: dict[str, list[Any]] = {
    "1p": ["e", ["r"]],
    "2p": ["e", ["r", "r"]],
    "3p": ["e", ["r", "r", "r"]],
    "2i": [["e", ["r"]], ["e", ["r"]]],
    "3i": [["e", ["r"]], ["e", ["r"]], ["e", ["r"]]],
    "pi": [["e", ["r", "r"]], ["e", ["r"]]],
    "ip": [[["e", ["r"]], ["e", ["r"]]], ["r"]],
    "2u": [["e", ["r"]], ["e", ["r"]], [UNION]],
    "up": [[["e", ["r"]], ["e", ["r"]], [UNION]], ["r"]],
    "2in": [["e", ["r"]], ["e", ["r", NEGATION]]],
    "3in": [["e", ["r"]], ["e", ["r"]], ["e", ["r", NEGATION]]],
    "inp": [[["e", ["r"]], ["e", ["r", NEGATION]]], ["r"]],
    "pin": [["e", ["r", "r"]], ["e", ["r", NEGATION]]],
    "pni": [["e", ["r", "r", NEGATION]], ["e", ["r"]]],
}


def from_lists(query: Any) -> Formula:
    """The formula of a nested list."""
    found = _parse(query, query, 0)
    check_size(found)
    return found


def _parse(part: Any, whole: Any, depth: int) -> Formula:
    if not isinstance(part, list | tuple) or len(part) < 2 or depth > MAX_DEPTH:
        raise _refused(part, whole)
    if _is_relations(part[1]) and len(part) == 2:
        start = Entity(part[0]) if _is_name(part[0]) else _parse(part[0], whole, depth + 1)
        return _chain(start, part[1])
    members = list(part)
    is_union = isinstance(members[-1], list | tuple) and list(members[-1]) == [UNION]
    if is_union:
        members.pop()
    if len(members) < 2:
        raise _refused(part, whole)
    parsed = tuple(_parse(member, whole, depth + 1) for member in members)
    return Or(parsed) if is_union else And(parsed)


def _chain(start: Formula, relations: Sequence[Any]) -> Formula:
    for relation in relations:
        start = Not(start) if relation == NEGATION else Along(relation, start)
    return start


def _is_name(part: Any) -> bool:
    return isinstance(part, int | str) and not isinstance(part, bool)


def _is_relations(part: Any) -> bool:
    """Whether this is the second half of a chain: names and ids only, and no union mark."""
    return isinstance(part, list | tuple) and len(part) > 0 and all(map(_is_name, part)) and list(part) != [UNION]


def _refused(part: Any, whole: Any) -> DataError:
    return DataError(
        f"{_short(part)} in the query {_short(whole)} is no chain [entity, [relation, …]], no list of such "
        "(an intersection; with [-1] at its end a union) and no [list, [relation, …]]"
    )


def _short(part: Any) -> str:
    return _SHORT.repr(part)  # a plain repr of a hostile list would not end well


def to_lists(formula: Formula) -> list[Any]:
    """The nested list of a formula; `from_lists` gives the formula back."""
    if isinstance(formula, And | Or):
        members: list[Any] = [to_lists(part) for part in formula.members]
        return [*members, [UNION]] if isinstance(formula, Or) else members
    relations: list[Name] = []
    while isinstance(formula, Along | Not):
        relations.append(NEGATION if isinstance(formula, Not) else formula.relation)
        formula = formula.of
    if isinstance(formula, Everything) or not relations:
        raise DataError("a nested list can't say 'any entity', and a chain in it needs at least one relation")
    start = formula.entity if isinstance(formula, Entity) else to_lists(formula)
    return [start, relations[::-1]]


def shape_of(formula: Formula) -> str:
    """The name of the shape, or "other"."""
    return _SHAPE_OF.get(_blank(formula), "other")


def _blank(formula: Formula) -> Formula:
    """The formula with all names alike, members of and/or in one order."""
    if isinstance(formula, Entity):
        return Entity("e")
    if isinstance(formula, Along):
        return Along("r", _blank(formula.of))
    if isinstance(formula, Not):
        return Not(_blank(formula.of))
    if isinstance(formula, And | Or):
        members = tuple(sorted((_blank(part) for part in formula.members), key=repr))
        return And(members) if isinstance(formula, And) else Or(members)
    return Everything()


_SHAPE_OF = {_blank(from_lists(query)): name for name, query in SHAPES.items()}
NEGATED = tuple(name for name, query in SHAPES.items() if has_negation(from_lists(query)))
POSITIVE = tuple(name for name in SHAPES if name not in NEGATED)  # EPFO: existential positive first order
