"""Questions to begin with, for somebody who has never seen the graph: typical relations, well connected entities."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gamma_kg.explain.neighbourhood_picture import FactGroup
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.logic.conditions import Condition
from gamma_kg.serve.facts import groups_of
from gamma_kg.serve.hosted import HostedGraph

COUNT = 6


@dataclass(frozen=True)
class ExampleQuestion:
    head: str | None
    relation: str | None
    tail: str | None


def example_questions(graph: HostedGraph, count: int = COUNT) -> list[ExampleQuestion]:
    """For each of the commonest relations one of its best connected heads that seems to have more answers."""
    kg = graph.kg
    found: list[ExampleQuestion] = []
    used: set[int] = set()
    for relation in graph.relations.find("", 2 * count):
        for entity in graph.entities.find("", 300):
            if entity not in used and len(kg.answers(entity, relation)):
                used.add(entity)
                found.append(ExampleQuestion(kg.entities[entity], kg.relations[relation], None))
                break
    if len(found) > 1:
        first = found[0]
        other = kg.entities[int(kg.answers(kg.entity_id(first.head or ""), kg.relation_id(first.relation or ""))[0])]
        found.insert(2, ExampleQuestion(first.head, None, other))
    return found[:count]


def example_conditions(graph: HostedGraph, count: int = 3) -> list[list[Condition]]:
    """Questions of two steps to well connected entities: ?x stands in a relation to a ?y that stands in one to it."""
    found: list[list[Condition]] = []
    for entity in graph.entities.find("", 4 * count):
        lines = _two_steps(graph.kg, entity)
        if lines and all(lines[0] != other[0] for other in found):
            found.append(lines)
    return found[:count]


def _two_steps(kg: KnowledgeGraph, entity: int) -> list[Condition]:
    """Where ?x can stand in the same relation to the entity as ?y does, it must not: borders a member, is no member."""
    name = kg.entities[entity]
    near = max(groups_of(kg, entity, 1), key=lambda group: group.count, default=None)
    if near is None:
        return []
    far = [group for group in groups_of(kg, kg.entity_id(near.others[0]), 1) if group.relation != near.relation]
    for group in far:
        ends = groups_of(kg, kg.entity_id(group.others[0]), 1)
        if any(end.relation == near.relation and end.is_head != near.is_head for end in ends):
            denied = replace(_line(name, near, "?x"), join="not")
            return [_line("?y", group, "?x"), _line(name, near, "?y"), denied]
    return [_line("?y", far[0], "?x"), _line(name, near, "?y")] if far else []


def _line(owner: str, group: FactGroup, other: str) -> Condition:
    """The condition that `other` is what the group of facts of `owner` leads to."""
    ends = (owner, other) if group.is_head else (other, owner)
    return Condition(ends[0], group.relation, ends[1])
