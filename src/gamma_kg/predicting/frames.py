"""Answers for notebooks: lists that show themselves as tables, and data frames of questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gamma_kg.data.columns import ROLES
from gamma_kg.errors import DataError
from gamma_kg.io.shown import html_text
from gamma_kg.io.table import table

if TYPE_CHECKING:
    from gamma_kg.graph.graph import KnowledgeGraph
    from gamma_kg.predicting.prediction import Prediction, Query
    from gamma_kg.predicting.predictor import Predictor

# What is said of an answer, and what it was computed on: at most so many facts around the source, None: all facts.
ANSWER_COLUMNS = ("name", "probability", "score", "known", "local", "is_sampled")


class Predictions(list["Prediction"]):
    """The answers to one query, best first: a list that a notebook shows as a table."""

    def to_dataframe(self, library: str = "polars") -> Any:
        """The answers as a table."""
        fields = (*ROLES, *ANSWER_COLUMNS)
        return table({field: [getattr(p, field) for p in self] for field in fields}, library)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{rank}</td><td>{html_text(p.name)}</td><td>{html_text(p.head)}</td>"
            f"<td>{html_text(p.relation)}</td><td>{html_text(p.tail)}</td><td>{p.probability:.1%}</td>"
            f"<td>{p.score:.2f}</td><td>{'yes' if p.known else ''}</td></tr>"
            for rank, p in enumerate(self, 1)
        )
        titles = ("", "answer", "head", "relation", "tail", "probability", "score", "known")
        head = "".join(f"<th>{title}</th>" for title in titles)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def predict_frame(model: Predictor, kg: KnowledgeGraph, frame: Any, **options: Any) -> Any:
    """Answers to the questions of a polars or pandas data frame, as a data frame of the same library.

    The frame has two or three of the columns head, relation, tail; in each row one of them is missing, null, empty
    or "?": that one is asked for. Every answer is a row: the question's columns filled in, then `question` (the row
    that asked, counted from 0), `asked`, `rank`, `probability`, `score`, `known`, `local` (facts in the neighbourhood
    at most; null: computed on the whole graph) and `is_sampled`; further columns of a question are repeated
    with each of its answers. Options are those of `AnswerOptions`.
    """
    library, columns = _columns(frame)
    present = [role for role in ROLES if role in columns]
    if len(present) < 2:
        raise DataError(f"the data frame needs two of the columns head, relation, tail; it has {', '.join(columns)}")
    num = len(columns[present[0]])
    queries = [_query(columns, row) for row in range(num)]
    answers: list[Sequence[Prediction]] = [()] * num
    for position, found in model.predict_many(kg, queries, **options):
        answers[position] = found
    further = [name for name in columns if name not in ROLES]
    out: dict[str, list[Any]] = {
        name: [] for name in (*ROLES, *further, "question", "asked", "rank", *ANSWER_COLUMNS[1:])
    }
    for row, (query, ranked) in enumerate(zip(queries, answers, strict=True)):
        for rank, p in enumerate(ranked, 1):
            cells = {"head": p.head, "relation": p.relation, "tail": p.tail, "question": row, "rank": rank}
            cells |= {"asked": ROLES[query.index(None)], "probability": p.probability, "score": p.score}
            cells |= {"known": p.known, "local": p.local, "is_sampled": p.is_sampled}
            cells |= {name: columns[name][row] for name in further}
            for name, column in out.items():
                column.append(cells[name])
    return table(out, library)


def _columns(frame: Any) -> tuple[str, dict[str, list[Any]]]:
    """The library of a data frame and its columns as lists; what pandas calls missing is None."""
    kind = type(frame).__module__.split(".")[0]
    if kind == "polars":
        frame = frame.collect() if hasattr(frame, "collect") else frame
        return kind, {name: frame[name].to_list() for name in frame.columns}
    if kind == "pandas":
        return kind, {
            str(name): [None if null else cell for cell, null in zip(frame[name], frame[name].isna(), strict=True)]
            for name in frame.columns
        }
    raise DataError(f"expected a polars or pandas data frame, got {type(frame).__name__}")


def _query(columns: dict[str, list[Any]], row: int) -> Query:
    cells = [columns[role][row] if role in columns else None for role in ROLES]
    head, relation, tail = (None if cell in (None, "", "?") else str(cell) for cell in cells)
    if [head, relation, tail].count(None) != 1:
        raise DataError(
            f"row {row} of the data frame: exactly one of head, relation and tail must be empty, got {cells}"
        )
    return head, relation, tail
