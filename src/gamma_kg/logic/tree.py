"""Conditions on variables → a formula, if they form a tree that hangs on the free variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gamma_kg.errors import DataError
from gamma_kg.logic.formula import (
    INVERSE,
    Along,
    And,
    Entity,
    Everything,
    Formula,
    Not,
    Or,
    check_bounded,
    check_size,
    members_of,
)

# Unions that tie two variables together are asked case by case, and their cases multiply.
MAX_CASES = 500


@dataclass(frozen=True)
class Variable:
    name: str
    is_shown: bool = True  # blank nodes are variables that nobody asked to see

    def __str__(self) -> str:
        return f"?{self.name}" if self.is_shown else "[]"


@dataclass(frozen=True)
class Constant:
    name: str


End = Variable | Constant
Triple = tuple[End, Any, End]


@dataclass(frozen=True)
class Pattern:
    """A group of conditions that hold together."""

    triples: tuple[Triple, ...] = ()
    unions: tuple[tuple[Pattern, ...], ...] = ()
    denied: tuple[Pattern, ...] = ()
    values: tuple[tuple[Variable, tuple[Constant, ...]], ...] = ()

    def __add__(self, other: Pattern) -> Pattern:
        return Pattern(
            self.triples + other.triples,
            self.unions + other.unions,
            self.denied + other.denied,
            self.values + other.values,
        )

    def variables(self) -> set[Variable]:
        found = {end for s, _, o in self.triples for end in (s, o) if isinstance(end, Variable)}
        found |= {variable for variable, _ in self.values}
        for group in (*(branch for union in self.unions for branch in union), *self.denied):
            found |= group.variables()
        return found


def formula_of(free: Variable, pattern: Pattern) -> Formula:
    """The entities that the free variable may stand for."""
    if free not in pattern.variables():
        raise DataError(f"{free} is asked for, but no condition mentions it")
    found = _expanded(free, pattern, _Cases())
    check_size(found)
    check_bounded(found)
    return found


class _Cases:
    """Counts the branches that one question is taken apart into."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, branches: int) -> None:
        self._count += branches
        if self._count > MAX_CASES:
            raise DataError(
                f"unions that tie two variables together multiply: this question has more than {MAX_CASES} cases; "
                "ask it in parts, or let each UNION mention one variable of the rest"
            )


def _expanded(free: Variable, pattern: Pattern, cases: _Cases) -> Formula:
    """A union that ties two variables together is asked branch by branch; one that hangs on one stays where it is."""
    for number, union in enumerate(pattern.unions):
        rest = Pattern(
            pattern.triples, pattern.unions[:number] + pattern.unions[number + 1 :], pattern.denied, pattern.values
        )
        inside: set[Variable] = set().union(*(branch.variables() for branch in union))
        if len(inside & (rest.variables() | {free})) > 1:
            cases.add(len(union))
            return Or(tuple(_expanded(free, rest + branch, cases) for branch in union), name=free.name)
    return _Tree(free, pattern, cases).formula()


class _Tree:
    """Walks from the free variable over the conditions; each is used once, each variable met once."""

    def __init__(self, free: Variable, pattern: Pattern, cases: _Cases) -> None:
        self.free, self.pattern, self._cases = free, pattern, cases
        self._used: set[tuple[str, int]] = set()
        self._met: set[Variable] = set()

    def formula(self) -> Formula:
        found = self._set_of(self.free)
        for kind in ("triples", "unions", "denied", "values"):
            for number, item in enumerate(getattr(self.pattern, kind)):
                if (kind, number) not in self._used:
                    raise _unconnected(kind, item, self.free)
        return found

    def _set_of(self, variable: Variable) -> Formula:
        """What `variable` may stand for, by all conditions on this side of it."""
        self._met.add(variable)
        holds: list[Formula] = []
        for number, (subject, path, object_) in enumerate(self.pattern.triples):
            if ("triples", number) in self._used or variable not in (subject, object_):
                continue
            self._used.add(("triples", number))
            if variable == object_:
                holds += members_of(_along(path, self._end(subject, variable)), And)
            else:
                holds += members_of(_along(("inverse", path), self._end(object_, variable)), And)
        for number, (owner, constants) in enumerate(self.pattern.values):
            if owner == variable:
                self._used.add(("values", number))
                entities: tuple[Formula, ...] = tuple(Entity(constant.name) for constant in constants)
                holds.append(entities[0] if len(entities) == 1 else Or(entities))
        for number, union in enumerate(self.pattern.unions):
            if any(variable in branch.variables() for branch in union) and ("unions", number) not in self._used:
                self._used.add(("unions", number))
                for branch in union:
                    if variable not in branch.variables():
                        raise DataError(f"each branch of a UNION must mention {variable}; one does not")
                holds.append(Or(tuple(_expanded(variable, branch, self._cases) for branch in union)))
        denied = [Not(part) for part in self._denied(variable)]
        members = (*holds, *denied)
        if not holds:
            members = (Everything(), *denied)
        found = members[0] if len(members) == 1 else And(members)
        return found.called(variable.name) if variable.is_shown else found

    def _end(self, end: End, from_: Variable) -> Formula:
        if isinstance(end, Constant):
            return Entity(end.name)
        if end in self._met:
            raise DataError(
                f"the conditions form a cycle through {from_} and {end}: each variable may be reached in one way only. "
                f"Leave one condition out, or give {end} a second name there (the two may then differ)"
            )
        return self._set_of(end)

    def _denied(self, variable: Variable) -> list[Formula]:
        found = []
        rest = Pattern(self.pattern.triples, self.pattern.unions, (), self.pattern.values)
        for number, group in enumerate(self.pattern.denied):
            if variable not in group.variables():
                continue
            shared = group.variables() & (rest.variables() | {variable})
            if len(shared) > 1:
                listed = " and ".join(sorted(map(str, shared)))
                raise DataError(
                    f"what is denied (MINUS, NOT EXISTS) may share one variable with the rest, here it shares "
                    f"{listed}: use another variable inside it, or name an entity"
                )
            self._used.add(("denied", number))
            found.append(_expanded(variable, group, self._cases))
        return found


def _along(path: Any, of: Formula) -> Formula:
    """Where one gets from a set along a path."""
    kind, *rest = path
    if kind == "name":
        return Along(rest[0], of)
    if kind == "sequence":
        for part in rest:
            of = _along(part, of)
        return of
    if kind == "either":
        return Or(tuple(_along(part, of) for part in rest))
    inner_kind, *inner = rest[0]
    if inner_kind == "name":
        return Along(INVERSE + inner[0], of)
    if inner_kind == "inverse":
        return _along(inner[0], of)
    turned = [("inverse", part) for part in inner]
    return _along((inner_kind, *(reversed(turned) if inner_kind == "sequence" else turned)), of)


def _unconnected(kind: str, item: Any, free: Variable) -> DataError:
    if kind == "triples" and not any(isinstance(end, Variable) for end in (item[0], item[2])):
        return DataError(
            f"({item[0].name}, …, {item[2].name}) has no variable, so it is no condition on {free}: leave it out, "
            "or ask `gamma predict` about it"
        )
    return DataError(f"some conditions do not hang together with {free}: each must lead to it over shared variables")
