"""Formulas: trees of conditions with one free variable, which stands for the entities that fulfil them.

    Entity(e)       the set of one entity
    Everything()    all entities
    Along(r, of)    where one gets from the set `of` along relation r
    And, Or, Not    of sets

They are built by hand with `entity("X").along("inhibits") & ~entity("Y").along("treats")`, from the nested lists of the
BetaE files (`lists.py`) or from SPARQL (`sparql.py`). Entities and relations are names, until `resolve` makes ids of
them; relation ids run over 0..2R-1, a relation read from tail to head is written ^name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from gamma_kg.errors import DataError, UnknownNameError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import direct_of, inverse_of, is_inverse

INVERSE = "^"
Name = str | int
# More than any question needs. Trees are walked by recursion, and a part that is shared counts as often as it is met:
# without bounds a few hundred characters would exhaust the stack, or the memory.
MAX_DEPTH, MAX_PARTS = 100, 10_000


@dataclass(frozen=True)
class Formula:
    """One set of entities. `name` is what a user calls it: the variable of a SPARQL query."""

    name: str = field(default="", compare=False, kw_only=True)

    @property
    def parts(self) -> tuple[Formula, ...]:
        """The sets that this one is made of."""
        return ()

    def along(self, *relations: Name) -> Formula:
        """Where one gets from here along the relations, one after the other; "^r" reads r from tail to head."""
        found = self
        for relation in relations:
            found = Along(relation, found)
        return found

    def against(self, *relations: str) -> Formula:
        """The same with each relation read from tail to head."""
        return self.along(*(INVERSE + relation for relation in relations))

    def called(self, name: str) -> Formula:
        """The same set under a name, by which its best binding is told."""
        return replace(self, name=name)

    def __and__(self, other: Formula) -> Formula:
        return And((*members_of(self, And), *members_of(other, And)))

    def __or__(self, other: Formula) -> Formula:
        return Or((*members_of(self, Or), *members_of(other, Or)))

    def __invert__(self) -> Formula:
        return Not(self)


@dataclass(frozen=True)
class Entity(Formula):
    entity: Name


@dataclass(frozen=True)
class Everything(Formula):
    pass


@dataclass(frozen=True)
class Along(Formula):
    relation: Name
    of: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.of,)


@dataclass(frozen=True)
class And(Formula):
    members: tuple[Formula, ...]

    @property
    def parts(self) -> tuple[Formula, ...]:
        return self.members


@dataclass(frozen=True)
class Or(Formula):
    members: tuple[Formula, ...]

    @property
    def parts(self) -> tuple[Formula, ...]:
        return self.members


@dataclass(frozen=True)
class Not(Formula):
    of: Formula

    @property
    def parts(self) -> tuple[Formula, ...]:
        return (self.of,)


def entity(name: Name) -> Formula:
    """The set that holds this one entity: where every question starts."""
    return Entity(name)


def members_of(formula: Formula, kind: type[And] | type[Or]) -> tuple[Formula, ...]:
    """The members of an unnamed formula of this kind, else the formula itself: a & b & c is one And of three."""
    return formula.members if isinstance(formula, kind) and not formula.name else (formula,)


def walk(formula: Formula) -> Iterator[Formula]:
    """All sets of the tree, each before the ones it is made of."""
    yield formula
    for part in formula.parts:
        yield from walk(part)


def check_size(formula: Formula) -> None:
    """Refuse a question that is nested too deep or has too many parts to be walked through."""
    waiting, met = [(formula, 1)], 0
    while waiting:
        part, depth = waiting.pop()
        met += 1
        if depth > MAX_DEPTH:
            raise DataError(f"a question goes at most {MAX_DEPTH} steps deep, this one goes deeper; ask it in parts")
        if met > MAX_PARTS:
            raise DataError(
                f"a question has at most {MAX_PARTS:,} parts once its alternatives are written out, this one has more; "
                "ask it in parts"
            )
        waiting.extend((inner, depth + 1) for inner in part.parts)


def height(formula: Formula) -> int:
    """How many relations lie one after the other on the longest way down."""
    below = max((height(part) for part in formula.parts), default=0)
    return below + isinstance(formula, Along)


def beginning(formula: Formula) -> tuple[int, ...]:
    """Where the first branch of a formula of ids starts and the relations on from there; -1: from no entity."""
    way: list[int] = []
    while formula.parts:
        if isinstance(formula, Along):
            way.append(int(formula.relation))
        formula = formula.parts[0]
    return (int(formula.entity) if isinstance(formula, Entity) else -1, *reversed(way))


def has_negation(formula: Formula) -> bool:
    return any(isinstance(part, Not) for part in walk(formula))


def with_parts(formula: Formula, parts: tuple[Formula, ...]) -> Formula:
    """The same kind of set made of other parts."""
    if isinstance(formula, And | Or):
        return replace(formula, members=parts)
    if isinstance(formula, Along | Not):
        return replace(formula, of=parts[0])
    return formula


def renamed(formula: Formula, entity_of: Callable[[Name], Name], relation_of: Callable[[Name], Name]) -> Formula:
    """The same formula with other names or ids of its entities and relations."""
    formula = with_parts(formula, tuple(renamed(part, entity_of, relation_of) for part in formula.parts))
    if isinstance(formula, Entity):
        return replace(formula, entity=entity_of(formula.entity))
    if isinstance(formula, Along):
        return replace(formula, relation=relation_of(formula.relation))
    return formula


def resolve(formula: Formula, kg: KnowledgeGraph) -> Formula:
    """Ids instead of names; an unknown name or an id out of range is an error."""
    return renamed(formula, lambda name: _entity_id(name, kg), lambda name: relation_id(name, kg))


def _entity_id(name: Name, kg: KnowledgeGraph) -> int:
    return kg.entity_id(name) if isinstance(name, str) else _checked(name, kg.num_entities, "entity")


def relation_id(name: Name, kg: KnowledgeGraph) -> int:
    """The id of a relation, or of the inverse of one where its name has a ^ in front."""
    if isinstance(name, int):
        return _checked(name, kg.num_types, "relation")
    if name.startswith(INVERSE) and name not in kg.relations:
        return inverse_of(kg.relation_id(name.removeprefix(INVERSE)), kg.num_relations)
    return kg.relation_id(name)


def relation_name(relation: int, kg: KnowledgeGraph) -> str:
    """The name of a relation id, with ^ in front of an inverse."""
    name = kg.relations[direct_of(relation, kg.num_relations)]
    return INVERSE + name if is_inverse(relation, kg.num_relations) else name


def _checked(number: int, limit: int, what: str) -> int:
    if isinstance(number, bool) or not 0 <= number < limit:
        raise UnknownNameError(f"{what} ids of this graph lie in 0..{limit - 1}, the query has {number}")
    return int(number)


def check_bounded(formula: Formula) -> None:
    """Refuse a question whose answers nothing positive bounds."""
    if not _is_bounded(formula):
        raise DataError(
            "nothing but a negation says what is asked for, so almost every entity would be an answer; "
            "add a condition that answers must fulfil"
        )


def _is_bounded(formula: Formula) -> bool:
    if isinstance(formula, And):
        return any(_is_bounded(part) for part in formula.members)
    if isinstance(formula, Or):
        return all(_is_bounded(part) for part in formula.members)
    return not isinstance(formula, Not | Everything)
