"""Questions to begin with, for somebody who has never seen the graph: typical relations, well connected entities."""

from __future__ import annotations

from dataclasses import dataclass

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
