"""A question with several steps: conditions line by line, or SPARQL. The address holds all of it.

Lines are added and taken away by the form's own buttons, so that it works without script.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from gamma_kg.errors import DataError
from gamma_kg.logic.ask import WORTH_TELLING, Answer, worth_telling
from gamma_kg.logic.conditions import JOINS, Condition, Join, formula_of_conditions, sparql_of_conditions
from gamma_kg.logic.formula import Formula
from gamma_kg.serve.examples import example_conditions
from gamma_kg.serve.pages.rendering import Given, Render, address
from gamma_kg.serve.problems import status_of
from gamma_kg.serve.schemas import MAX_QUESTION
from gamma_kg.serve.service import Service

MOST_LINES = 20
EMPTY = Condition("", "", "")
Column = Annotated[list[Given], Query(max_length=MOST_LINES)]


def question_address(graph: str, lines: list[Condition], find: str = "") -> str:
    """The page that asks these conditions."""
    columns = {name: [getattr(line, name) for line in lines] for name in ("join", "head", "relation", "tail")}
    return address(f"/g/{graph}/question", find=find, **columns)


def routes(service: Service, render: Render) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/g/{graph}/question")
    async def question(
        request: Request,
        graph: str,
        join: Column = [],  # noqa: B006
        head: Column = [],  # noqa: B006
        relation: Column = [],  # noqa: B006
        tail: Column = [],  # noqa: B006
        find: Given = "?x",
        sparql: Annotated[str, Query(max_length=MAX_QUESTION)] = "",
        new: bool = False,
        top: Annotated[int, Query(ge=1, le=200)] = 10,
        add: bool = False,
        drop: Annotated[int | None, Query(ge=0, le=MOST_LINES)] = None,
    ) -> HTMLResponse:
        hosted = service.graphs[graph]
        lines = _lines(join, head, relation, tail, drop)
        answers: list[Answer] | None = None
        left_out = 0
        text, status = sparql.strip(), 200
        is_asked = bool(lines or text) and not add and drop is None
        complaint = _lacking(lines) if is_asked and not text else ""
        if is_asked and not complaint:
            try:
                asked: str | Formula = text or formula_of_conditions(lines, find.strip())
                found = await service.ask(hosted, asked, top_k=top, only_new=new)
                answers = worth_telling(found)
                left_out = len(found) - len(answers)
            except DataError as error:
                complaint, status = str(error), status_of(error)
        return render(
            request,
            "question.html",
            status,
            graph=hosted,
            lines=[*lines, *([EMPTY] if add or not lines else [])],
            may_add=len(lines) < MOST_LINES,
            is_adding=add,
            joins=JOINS,
            find=find,
            sparql=text,
            said=_said(lines, find) if answers is not None and not text else [],
            new=new,
            top=top,
            answers=answers,
            left_out=left_out,
            least=WORTH_TELLING,
            variables=list(dict.fromkeys(name for a in answers or () for name in a.bindings)),
            complaint=complaint,
            examples=[(q, question_address(graph, q)) for q in example_conditions(hosted)] if answers is None else [],
        )

    return pages


def _lines(join: list[str], head: list[str], relation: list[str], tail: list[str], drop: int | None) -> list[Condition]:
    """The lines that say something, less the one that is taken away; the first can't be an alternative."""
    found: list[Condition] = []
    for number, (how, *parts) in enumerate(zip_longest(join, head, relation, tail, fillvalue="")):
        words = [part.strip() for part in parts]
        if any(words) and number != drop:
            known: Join = "not" if how == "not" else "or" if how == "or" and found else "and"
            found.append(Condition(words[0], words[1], words[2], known))
    return found


def _said(lines: list[Condition], find: str) -> list[str]:
    """The lines of the same question in SPARQL."""
    return (sparql_of_conditions(lines, find.strip()) or "").splitlines()


def _lacking(lines: list[Condition]) -> str:
    """What to fill in, where a line is not whole."""
    for number, line in enumerate(lines, 1):
        if not (line.head and line.relation and line.tail):
            return f"Line {number} lacks a part: name an entity, or write a variable such as ?y where none is named."
    return ""
