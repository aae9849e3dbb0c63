"""Conditions line by line, as a form has them: (head, relation, tail), joined by and, or, not. → pattern → formula.

    ?river  flows through  ?x
    and     ?river  mouth in  Black Sea          hold together
    or      ?river  mouth in  Baltic Sea         an alternative to the line above
    not     ?x  member of  European Union        must not be so

A name with a ? in front is a variable. A variable that comes up first in an alternative or in a denial belongs there,
and so does every later `and` line about it: "not ?x treats ?d, and ?d kind of cancer" denies both together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gamma_kg.errors import DataError
from gamma_kg.logic.formula import Formula
from gamma_kg.logic.tree import Constant, End, Pattern, Variable, formula_of

Join = Literal["and", "or", "not"]
JOINS: tuple[Join, ...] = ("and", "or", "not")
_VARIABLE = re.compile(r"\?[^\W\d]\w*")
_UNSAYABLE = re.compile(r"[<>\n]")  # SPARQL has no way to write these into a name


@dataclass(frozen=True)
class Condition:
    """One line; `join` says how it goes with those above."""

    head: str
    relation: str
    tail: str
    join: Join = "and"

    @property
    def ends(self) -> tuple[End, End]:
        return _end(self.head), _end(self.tail)

    @property
    def variables(self) -> set[Variable]:
        return {end for end in self.ends if isinstance(end, Variable)}


Branch = list[Condition]


@dataclass
class _Group:
    """Lines that stand together: one, alternatives, or what is denied."""

    is_denied: bool
    branches: list[Branch] = field(default_factory=list)

    @property
    def keeps_its_own(self) -> bool:
        return self.is_denied or len(self.branches) > 1


def formula_of_conditions(conditions: Sequence[Condition], find: str = "?x") -> Formula:
    """The entities that the variable `find` may stand for."""
    groups = _grouped(conditions, find)
    positive = [group for group in groups if not group.is_denied]
    plain = [group for group in positive if not group.keeps_its_own]
    pattern = Pattern(
        triples=tuple(_triple(line) for group in plain for line in group.branches[0]),
        unions=tuple(_branches(group) for group in positive if group.keeps_its_own),
        denied=tuple(
            Pattern(unions=(_branches(group),)) if len(group.branches) > 1 else _branches(group)[0]
            for group in groups
            if group.is_denied
        ),
    )
    return formula_of(_asked(find), pattern)


def sparql_of_conditions(conditions: Sequence[Condition], find: str = "?x") -> str | None:
    """The same question in SPARQL; None if a name holds what SPARQL can't write."""
    if any(_UNSAYABLE.search(part) for line in conditions for part in (line.head, line.relation, line.tail)):
        return None
    parts = []
    for group in _grouped(conditions, find):
        said = [" . ".join(_said(line) for line in branch) for branch in group.branches]
        text = said[0] if len(said) == 1 else " UNION ".join(f"{{ {branch} }}" for branch in said)
        parts.append(f"FILTER NOT EXISTS {{ {text} }}" if group.is_denied else f"{text} .")
    return "\n".join((f"SELECT {_asked(find)} WHERE {{", *(f"  {part}" for part in parts), "}"))


def _grouped(conditions: Sequence[Condition], find: str) -> list[_Group]:
    if not conditions:
        raise DataError("a question needs at least one condition: head, relation, tail")
    if conditions[0].join == "or":
        raise DataError("the first condition has nothing above it to be an alternative to")
    groups: list[_Group] = []
    first_in: dict[Variable, tuple[_Group, Branch] | None] = {_asked(find): None}  # None: belongs to the whole
    last: _Group | None = None
    for line in conditions:
        homes = [home for variable in line.variables if (home := first_in.get(variable)) is not None]
        own = [home for home in homes if home[0].keeps_its_own]
        if line.join == "or" and last is not None:
            group, branch = last, [line]
            group.branches.append(branch)
        elif line.join == "and" and own:
            group, branch = own[0]
            branch.append(line)
        else:
            branch = [line]
            group = _Group(line.join == "not", [branch])
            groups.append(group)
        for variable in line.variables:
            home = first_in.setdefault(variable, (group, branch))
            if home is not None and home[1] is not branch:  # two branches know it: it is nobody's own
                first_in[variable] = None
        last = group
    return groups


def _branches(group: _Group) -> tuple[Pattern, ...]:
    return tuple(Pattern(triples=tuple(_triple(line) for line in branch)) for branch in group.branches)


def _triple(line: Condition) -> tuple[End, tuple[str, str], End]:
    head, tail = line.ends
    return head, ("name", line.relation), tail


def _end(text: str) -> End:
    if not text.startswith("?"):
        return Constant(text)
    if not _VARIABLE.fullmatch(text):
        raise DataError(f"a variable is a ? and a word, such as ?x or ?river; got {text!r}")
    return Variable(text[1:])


def _asked(find: str) -> Variable:
    end = _end(find)
    if isinstance(end, Constant):
        raise DataError(f"what is asked for is a variable, such as ?x; got {find!r}")
    return end


def _said(line: Condition) -> str:
    head, tail = (str(end) if isinstance(end, Variable) else f"<{end.name}>" for end in line.ends)
    return f"{head} <{line.relation}> {tail}"
