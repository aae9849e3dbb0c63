"""Query sets on disk: our own JSON lines with names, and the folders of BetaE with ids.

Our file: a first line that says what it is and how it came to be, then a query a line,

    {"shape": "2p", "balance": "classic", "query": ["Kenya", ["capital", "^located in"]], "easy": […], "hard": […]}

with the names of entities and relations, or their ids, `query` as in `lists.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.errors import DataError, GammaError
from gamma_kg.graph.graph import KnowledgeGraph
from gamma_kg.io.atomic import write_text
from gamma_kg.logic.formula import Entity, Formula, relation_name, renamed, resolve
from gamma_kg.logic.lists import from_lists, shape_of, to_lists
from gamma_kg.logic.pickles import read_pickle
from gamma_kg.logic.sample import BALANCES, LogicalQuery

FORMAT = "gamma-kg/queries/1"
BETAE_PARTS = ("queries", "easy-answers", "hard-answers")
_SHORT = Repr()


def write_queries(
    path: str | Path, queries: Iterable[LogicalQuery], kg: KnowledgeGraph, origin: Mapping[str, Any]
) -> None:
    """Write a set whole or not at all; the same set gives the same bytes."""
    lines = [json.dumps({"format": FORMAT, **origin}, ensure_ascii=False)]
    for query in queries:
        named: dict[str, Any] = {
            "shape": query.shape,
            "balance": query.balance,
            "query": to_lists(_named(query.formula, kg)),
        }
        for part in ("easy", "hard", "unseen"):
            named[part] = [kg.entities[int(i)] for i in getattr(query, part)]
        lines.append(json.dumps(named, ensure_ascii=False))
    write_text(path, "\n".join(lines) + "\n")


def _named(formula: Formula, kg: KnowledgeGraph) -> Formula:
    return renamed(formula, lambda i: kg.entities[int(i)], lambda r: relation_name(int(r), kg))


def read_query_set(path: str | Path, kg: KnowledgeGraph, split: str = "test") -> list[LogicalQuery]:
    """The queries of a file of ours or of a BetaE folder, by the ids of `kg`."""
    path = Path(path)
    return list(_of_folder(path, kg, split) if path.is_dir() else _of_file(path, kg))


def _of_file(path: Path, kg: KnowledgeGraph) -> Iterator[LogicalQuery]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"can't read {path}: {error}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.strip() else {"format": FORMAT}
        except (json.JSONDecodeError, RecursionError):
            raise DataError(f"{path} line {number}: expected a JSON object, found {line[:60]!r}") from None
        if not isinstance(row, dict) or ("format" in row and row["format"] != FORMAT):
            raise DataError(f"{path} line {number}: expected an object of {FORMAT}, as `gamma queries make` writes it")
        if "format" in row:
            continue
        try:
            yield _of_row(row, kg)
        except GammaError as error:
            raise DataError(f"{path} line {number}: {error}") from None


def _of_row(row: Mapping[str, Any], kg: KnowledgeGraph) -> LogicalQuery:
    missing = [part for part in ("query", "hard") if part not in row]
    if missing:
        raise DataError(f"{' and '.join(missing)} missing; a query has query, easy, hard and may have unseen, shape")
    formula = resolve(from_lists(row["query"]), kg)
    answers = [_entities(row.get(part, []), kg) for part in ("easy", "hard", "unseen")]
    balance = str(row.get("balance", "classic"))
    if balance not in BALANCES:
        raise DataError(f"balance must be one of {', '.join(BALANCES)}, found {balance!r}")
    return LogicalQuery(str(row.get("shape") or shape_of(formula)), balance, formula, *answers)


def _entities(names: Any, kg: KnowledgeGraph) -> NDArray[np.int64]:
    if not isinstance(names, list):
        raise DataError(f"answers are a list of entities, found {str(names)[:40]!r}")
    ids = [resolve(Entity(name), kg) for name in names]
    return np.unique(np.array([found.entity for found in ids if isinstance(found, Entity)], dtype=np.int64))


def _of_folder(folder: Path, kg: KnowledgeGraph, split: str) -> Iterator[LogicalQuery]:
    """BetaE: {split}-queries.pkl maps structures to queries, two more files map queries to answers, id2ent and id2rel
    name the ids. Relations come in pairs there, +name and -name for its inverse."""
    paths = {part: folder / f"{split}-{part}.pkl" for part in BETAE_PARTS}
    absent = [path.name for path in paths.values() if not path.is_file()]
    if absent:
        raise DataError(f"{folder} is no BetaE folder: {', '.join(absent)} missing")
    queries, easy, hard = (_dict(read_pickle(path), path) for path in paths.values())
    entity_of, relation_of = _betae_names(folder, kg)
    for structure in sorted(queries, key=repr):
        for query in _members(queries[structure], paths["queries"], tuple):
            formula = resolve(renamed(from_lists(query), entity_of, relation_of), kg)
            answers = [
                _entities([entity_of(i) for i in _members(part.get(query, ()), path, int)], kg)
                for part, path in ((easy, paths["easy-answers"]), (hard, paths["hard-answers"]))
            ]
            yield LogicalQuery(shape_of(formula), "classic", formula, *answers)


def _dict(content: Any, path: Path) -> dict[Any, Any]:
    if not isinstance(content, dict):
        raise DataError(f"{path} should hold a dict, as BetaE files do; it holds a {type(content).__name__}")
    return content


def _members(found: Any, path: Path, kind: type) -> list[Any]:
    """What a set holds, in order: queries are tuples, answers are numbers."""
    try:
        if isinstance(found, set | list | tuple) and all(type(member) is kind for member in found):
            return sorted(found)
    except TypeError:  # queries of one structure can be compared; these are of several
        pass
    wanted = "queries of one structure" if kind is tuple else "numbers of entities"
    raise DataError(f"{path} should hold sets of {wanted}, as BetaE files do; it holds {_SHORT.repr(found)}")


def _betae_names(folder: Path, kg: KnowledgeGraph) -> tuple[Any, Any]:
    """How an id of the folder is called in the graph: by its name if the graph knows names, else by its number."""
    tables = [
        _dict(read_pickle(folder / name), folder / name) if (folder / name).is_file() else {}
        for name in ("id2ent.pkl", "id2rel.pkl")
    ]
    entities, relations = tables
    relations = {i: ("" if str(name)[:1] == "+" else "^") + str(name)[1:] for i, name in relations.items()}
    if not entities or str(next(iter(entities.values()))) not in kg.entities:
        return str, str
    return (lambda i: str(entities.get(i, i))), (lambda i: str(relations.get(i, i)))
