"""Questions in, ranked answers out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from gamma_kg.errors import DataError
from gamma_kg.explain import Explanation
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.graph.inverse import fact_of
from gamma_kg.logic.bindings import Binder, Link, LinkProbabilities
from gamma_kg.logic.execute import execute
from gamma_kg.logic.formula import Formula, check_bounded, check_size, resolve
from gamma_kg.logic.fuzzy import logic_named
from gamma_kg.logic.lists import from_lists
from gamma_kg.logic.predicted import ModelProjection, StepOptions, steps_of
from gamma_kg.logic.sparql import parse_sparql
from gamma_kg.predicting.answer_options import AnswerOptions
from gamma_kg.predicting.gamma import Gamma
from gamma_kg.predicting.switch import Local

TOP_K = 10
# What is less likely than this is hardly worth a reader's time: answers that are there only because more were wanted.
WORTH_TELLING = 0.005
Explain = Callable[..., Explanation]  # of head, relation and tail


@dataclass(frozen=True)
class Step:
    """One link on the way to an answer: a fact of the graph, or a predicted one."""

    head: str
    relation: str
    tail: str
    known: bool
    probability: float  # of this fact, weighed from both its ends; 1 where the graph holds it
    why: Explanation | None = None  # only for a predicted fact, and only if asked for


@dataclass(frozen=True)
class Answer:
    """An entity that answers the question."""

    name: str
    probability: float  # that all its steps hold, and nothing that is denied does
    degree: float  # how far it belongs to the fuzzy set that the question asks for: what answers are chosen by
    follows: bool  # from the facts of the graph, without prediction
    bindings: dict[str, str]  # the best entity for every inner variable
    steps: tuple[Step, ...]  # from the answer down
    denied: tuple[Step, ...] = ()  # what speaks most for something that the question denies, and so against the answer


def ask(
    kg: KnowledgeGraph,
    question: str | Formula | list[Any] | tuple[Any, ...],
    gamma: Gamma | None = None,
    *,
    top_k: int | None = None,
    logic: str = "product",
    steps: StepOptions | None = None,
    only_new: bool = False,
    why: bool = False,
    memory: str | int | None = None,
    local: Local = "auto",
    rules: bool = True,
) -> list[Answer]:
    """The best answers to a question with several steps: the `top_k` of the highest degree, most probable first.

    The question is SPARQL, a formula (`entity("X").along("inhibits") & …`) or a nested list as in the BetaE files.
    `gamma` are the bundled weights if left out; `steps` says how they take a step, `steps_of(gamma)` if left out.
    With `only_new`, answers that follow from the graph are left out; with `why`, each predicted step is explained.
    With `rules`, no step contradicts the patterns of the graph's own facts, as in `predict`.
    `local` as for `predict`: on a large graph each step is computed around the set that it starts from.
    """
    formula, limit = understood(question)
    top_k = next(wanted for wanted in (top_k, limit, TOP_K) if wanted is not None)
    if top_k < 1:
        raise DataError(f"a question wants at least one answer (LIMIT, top_k), got {top_k}")
    formula = resolve(formula, kg)
    check_bounded(formula)
    gamma = gamma or Gamma.from_pretrained()
    projector = ModelProjection(gamma, kg, steps or steps_of(gamma), memory=memory, local=local, rules=rules)
    memberships = execute([formula], projector, logic_named(logic))
    degree_N = memberships[formula]
    binder = Binder(formula, memberships, projector)
    if only_new:
        degree_N = degree_N.clone()
        degree_N[torch.from_numpy(binder.following())] = 0
    best = degree_N.topk(min(top_k, kg.num_entities))
    degrees = {int(i): float(degree) for degree, i in zip(best.values, best.indices, strict=True) if degree > 0}
    bindings = binder.bind(degrees)
    how = AnswerOptions(rules=rules, memory=memory, local=local)
    probabilities = link_probabilities(gamma, kg, {link for b in bindings.values() for link in b.all_links()}, how)
    explain = partial(gamma.explain, kg, memory=memory, local=local, rules=rules) if why else None
    answers = [
        Answer(
            name=kg.entities[i],
            probability=binding.probability(probabilities),
            degree=degrees[i],
            follows=binder.follows(i),
            bindings={name: kg.entities[j] for name, j in binding.entities.items()},
            steps=tuple(_steps(kg, binding.links, probabilities, explain)),
            denied=tuple(_steps(kg, binding.denied_links(), probabilities, None)),
        )
        for i, binding in bindings.items()
    ]
    return sorted(answers, key=lambda answer: (-answer.probability, -answer.degree))


def worth_telling(answers: Iterable[Answer], least: float = WORTH_TELLING) -> list[Answer]:
    """The answers that are at least this likely."""
    return [answer for answer in answers if answer.probability >= least]


def link_probabilities(
    gamma: Gamma, kg: KnowledgeGraph, links: Iterable[Link], how: AnswerOptions
) -> dict[Link, float]:
    """How likely each link is: what the graph holds is so; else as `predict` says it of a fact that it fitted."""
    links = list(links)
    predicted = [link for link in links if not link.known]
    found = dict.fromkeys(links, 1.0)
    if predicted:
        facts = np.array([fact_of(link.start, link.relation, link.end, kg.num_relations) for link in predicted])
        found.update(zip(predicted, gamma.fact_probabilities(kg, facts, how).tolist(), strict=True))
    return found


def understood(question: str | Formula | list[Any] | tuple[Any, ...]) -> tuple[Formula, int | None]:
    """The formula of a question by names, and how many answers it wants if it says so."""
    if isinstance(question, Formula):
        check_size(question)
        return question, None
    if isinstance(question, str):
        parsed = parse_sparql(question)
        return parsed.formula, parsed.limit
    return from_lists(question), None


def _steps(
    kg: KnowledgeGraph, links: Iterable[Link], probabilities: LinkProbabilities, explain: Explain | None
) -> Iterator[Step]:
    for link in links:
        head, relation, tail = fact_of(link.start, link.relation, link.end, kg.num_relations)
        names = kg.entities[head], kg.relations[relation], kg.entities[tail]
        why = None if explain is None or link.known else explain(head=names[0], relation=names[1], tail=names[2])
        yield Step(*names, known=link.known, probability=probabilities[link], why=why)
