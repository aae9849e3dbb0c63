"""From what the service knows to what goes over the wire; used by the REST interface and the page alike."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from gamma_kg.complete import Completion
from gamma_kg.logic.conditions import Condition, formula_of_conditions
from gamma_kg.logic.formula import Formula
from gamma_kg.predicting.prediction import Prediction
from gamma_kg.serve import schemas
from gamma_kg.serve.facts import degree, facts_of, groups_of
from gamma_kg.serve.hosted import HostedGraph
from gamma_kg.serve.jobs import Job

NEIGHBOURS_SHOWN = 4
ANSWER_FIELDS = tuple(schemas.Answer.model_fields)
_answer_values = attrgetter(*ANSWER_FIELDS)


def graph_info(graph: HostedGraph) -> schemas.GraphInfo:
    kg = graph.kg
    return schemas.GraphInfo(
        id=graph.id,
        title=graph.title,
        entities=kg.num_entities,
        relations=kg.num_relations,
        facts=kg.num_triples,
        uploaded=graph.is_uploaded,
        calibration=graph.calibration,
        types=graph.types.known[:500],
    )


def found_entities(graph: HostedGraph, text: str, limit: int) -> list[schemas.NamedEntity]:
    return [
        schemas.NamedEntity(name=graph.kg.entities[i], degree=degree(graph.kg, i), types=graph.types.of(i))
        for i in graph.entities.find(text, limit)
    ]


def found_relations(graph: HostedGraph, text: str, limit: int) -> list[schemas.NamedRelation]:
    return [
        schemas.NamedRelation(name=graph.kg.relations[i], facts=int(graph.facts_by_relation[i]))
        for i in graph.relations.find(text, limit)
    ]


def entity(graph: HostedGraph, name: str, offset: int, limit: int) -> schemas.Entity:
    kg, index = graph.kg, graph.kg.entity_id(name)
    return schemas.Entity(
        name=kg.entities[index],
        identifier=kg.entities.identifier(index),
        degree=degree(kg, index),
        types=graph.types.of(index, limit=8),
        facts=[schemas.OwnFact.of(fact) for fact in facts_of(kg, index, offset, limit)],
        offset=offset,
    )


def neighbourhood(graph: HostedGraph, name: str, shown: int = NEIGHBOURS_SHOWN) -> schemas.Neighbourhood:
    index = graph.kg.entity_id(name)
    groups = groups_of(graph.kg, index, shown)
    return schemas.Neighbourhood(name=graph.kg.entities[index], groups=[schemas.Group.of(group) for group in groups])


def formula(question: schemas.Conditions) -> Formula:
    """What conditions line by line ask for."""
    lines = [Condition(c.head, c.relation, c.tail, c.join) for c in question.conditions]
    return formula_of_conditions(lines, question.find)


def answer(prediction: Prediction) -> dict[str, Any]:
    """As in `schemas.Answer`; a plain dict, because thousands of these are made a second."""
    return dict(zip(ANSWER_FIELDS, _answer_values(prediction), strict=True))


def job_info(job: Job) -> schemas.JobInfo:
    return schemas.JobInfo.of(job, message=_message(job))


def proposals(graph: HostedGraph, job: Job) -> list[schemas.Proposal]:
    """The facts that a job found, with what a person thinks of them."""
    if not isinstance(job.result, Completion):
        return []
    verdict = graph.review.verdict
    return [schemas.Proposal.of(f, verdict=verdict((f.head, f.relation, f.tail))) for f in job.result.facts]


def _message(job: Job) -> str | None:
    if isinstance(job.result, Completion):
        r = job.result
        if r.queries_in_all is None:
            return f"{len(r.facts):,} facts found; stopped before it was chosen what to ask"
        return f"{len(r.facts):,} facts found; {r.queries_asked:,} of {r.queries_in_all:,} promising questions asked"
    return job.result if isinstance(job.result, str) else None
