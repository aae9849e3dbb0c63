"""Accepted facts back to where the graph lives: a SPARQL endpoint (INSERT DATA) or a Neo4j database (MERGE).

A fact is written by what the data calls its parts (head_id, relation_id, tail_id), never by its labels; one whose
parts the database can't be asked for (blank nodes, names that are no IRIs, a literal as head) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode
from urllib.request import Request

from gamma_kg.data.neo4j_graphs import NODE, RELATIONSHIP, is_address, plain_address, quoted, session_of
from gamma_kg.data.sparql import with_retries
from gamma_kg.errors import DataError
from gamma_kg.io.rdf_rows import is_iri, is_literal

BATCH_FACTS = 500


@dataclass(frozen=True)
class AcceptedFact:
    """A fact by the identifiers of its parts; `where` is its line."""

    head: str
    relation: str
    tail: str
    where: str
    probability: float | None = None


def write_back(address: str, facts: Sequence[AcceptedFact], *, graph: str | None = None, timeout: float = 60.0) -> int:
    """Writes the facts to `sparql:URL` (its update address) or `neo4j://…`; returns how many are there now."""
    complaints = [complaint for fact in facts if (complaint := trouble(address, fact))]
    if complaints:
        raise DataError(f"{complaints[0]}; {len(complaints)} of {len(facts)} facts can't be written, so none was")
    if is_address(address):
        return _to_neo4j(address, facts, timeout)
    return _to_sparql(address.removeprefix("sparql:"), facts, graph, timeout)


def trouble(address: str, fact: AcceptedFact) -> str | None:
    """Why this fact can't be written there, if it can't."""
    if is_address(address):
        if not (fact.head.startswith(NODE) and fact.tail.startswith(NODE) and fact.relation.startswith(RELATIONSHIP)):
            return f"{fact.where}: its parts are not of a Neo4j database (wanted head_id and tail_id like {NODE}4:…:17)"
        return None
    if not is_iri(fact.head) or not is_iri(fact.relation):
        return f"{fact.where}: head and relation must be IRIs, got {fact.head!r} and {fact.relation!r}"
    if not is_iri(fact.tail) and not is_literal(fact.tail):
        return f"{fact.where}: the tail must be an IRI or a literal, got {fact.tail!r}"
    return None


def statements(facts: Sequence[AcceptedFact], graph: str | None) -> Iterator[str]:
    """SPARQL updates for the facts, some hundred at a time."""
    if graph is not None and not is_iri(graph):
        raise DataError(f"a named graph is an IRI, got {graph!r}")
    for start in range(0, len(facts), BATCH_FACTS):
        lines = "".join(
            f"<{fact.head}> <{fact.relation}> {f'<{fact.tail}>' if is_iri(fact.tail) else fact.tail} .\n"
            for fact in facts[start : start + BATCH_FACTS]
        )
        yield f"INSERT DATA {{ GRAPH <{graph}> {{\n{lines}}} }}" if graph else f"INSERT DATA {{\n{lines}}}"


def _to_sparql(url: str, facts: Sequence[AcceptedFact], graph: str | None, timeout: float) -> int:
    for update in statements(facts, graph):
        headers = {"User-Agent": "gamma-kg", "Content-Type": "application/x-www-form-urlencoded"}
        # Inserting twice is inserting once, so a second attempt does no harm.
        with_retries(Request(url, data=urlencode({"update": update}).encode(), headers=headers), timeout, retries=2)
    return len(facts)


def _to_neo4j(address: str, facts: Sequence[AcceptedFact], timeout: float) -> int:
    by_type: dict[str, list[Mapping[str, Any]]] = {}
    for fact in facts:
        row = {"head": fact.head.removeprefix(NODE), "tail": fact.tail.removeprefix(NODE), "p": fact.probability}
        by_type.setdefault(unquote(fact.relation.removeprefix(RELATIONSHIP)), []).append(row)
    written = 0
    with session_of(address, timeout) as run:
        for kind, rows in by_type.items():
            query = (
                "UNWIND $rows AS row MATCH (h) WHERE elementId(h) = row.head MATCH (t) WHERE elementId(t) = row.tail "
                f"MERGE (h)-[r:{quoted(kind)}]->(t) ON CREATE SET r.proposed_by = 'gamma', r.probability = row.p "
                "RETURN count(r) AS written"
            )
            for start in range(0, len(rows), BATCH_FACTS):
                found = run(query, rows=rows[start : start + BATCH_FACTS])
                written += sum(row["written"] for row in found if isinstance(row.get("written"), int))
    if written < len(facts):
        raise DataError(
            f"{plain_address(address)}: {written} of {len(facts)} facts were written; the nodes of the others are gone"
        )
    return written
