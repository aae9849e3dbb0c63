"""Property graphs of Neo4j (and what speaks Bolt like it): every relationship is a fact, every label of a node too.

Read by Cypher in pages that follow the ids of relationships, so that a page costs the same wherever it lies. A node is
shown by its name, title, label or id property and identified by its element id (neo4j:4:…:17), by which accepted facts
find their nodes again when they are written back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.names import LABEL_PROPERTIES, RdfNames
from gamma_kg.data.options import Tally
from gamma_kg.errors import DataError

if TYPE_CHECKING:
    import neo4j

SCHEMES = tuple(f"{kind}{security}" for kind in ("neo4j", "bolt") for security in ("", "+s", "+ssc"))
NODE = "neo4j:"
RELATIONSHIP = "neo4j:type:"
LABEL = "neo4j:label:"
IS_A = "neo4j:is-a"
# Properties that people name nodes by, the most telling first.
NAME_PROPERTIES = ("name", "title", "label", "prefLabel", "id")
PAGE_QUERY = """MATCH (h)-[r]->(t) WHERE $after IS NULL OR elementId(r) > $after
RETURN elementId(r) AS id, type(r) AS relation,
elementId(h) AS head, h {{{names}}} AS head_names, labels(h) AS head_labels,
elementId(t) AS tail, t {{{names}}} AS tail_names, labels(t) AS tail_labels ORDER BY id LIMIT $size"""


def is_address(path: str) -> bool:
    """Whether a path names a database."""
    return urlsplit(path).scheme in SCHEMES


def read_database(address: str, encoder: TripleEncoder, tally: Tally) -> RdfNames:
    """Reads all relationships and labels of the database, at most `options.limit` relationships."""
    options = tally.options
    names = RdfNames(languages=options.languages)
    wanted = (*options.label_properties, *NAME_PROPERTIES)
    query = PAGE_QUERY.format(names=", ".join(f".{quoted(name)}" for name in dict.fromkeys(wanted)))
    tally.files.append(plain_address(address))
    labelled: set[str] = set()
    names.add_label(IS_A, LABEL_PROPERTIES[0], "is a", None)
    done, after = 0, None
    with session_of(address, options.timeout) as session:
        while True:
            size = options.page_size if options.limit is None else min(options.page_size, options.limit - done)
            rows = [dict(record) for record in session.run(query, after=after, size=size)]
            batch: list[tuple[str, str, str]] = []
            for row in rows:
                relation = RELATIONSHIP + quote(row["relation"], safe="")
                names.add_label(relation, LABEL_PROPERTIES[0], row["relation"], None)
                batch.append((NODE + row["head"], relation, NODE + row["tail"]))
                for end in ("head", "tail"):
                    if row[end] not in labelled:
                        labelled.add(row[end])
                        batch += _about(row, end, wanted, names)
            encoder.add_rows(batch)
            done += len(rows)
            if len(rows) < size or done == options.limit:
                break
            if rows[-1]["id"] == after:
                raise DataError(f"{plain_address(address)}: the same page came twice; is it a Neo4j database?")
            after = rows[-1]["id"]
    return names


def _about(row: Mapping[str, Any], end: str, wanted: Sequence[str], names: RdfNames) -> Iterator[tuple[str, str, str]]:
    """Names a node by the first property that is a text or a number; its labels are facts."""
    node, called = NODE + row[end], row[f"{end}_names"]
    texts = [str(called[name]) for name in wanted if isinstance(called.get(name), str | int)]
    for text in texts[:1]:
        names.add_label(node, LABEL_PROPERTIES[0], text, None)
    for text in texts[1:]:
        names.add_label(node, "http://www.w3.org/2004/02/skos/core#altLabel", text, None)
    for label in row[f"{end}_labels"]:
        names.add_label(LABEL + quote(label, safe=""), LABEL_PROPERTIES[0], label, None)
        yield node, IS_A, LABEL + quote(label, safe="")


@contextmanager
def session_of(address: str, timeout: float) -> Iterator[neo4j.Session]:
    """A session with the database of an address such as neo4j://user:password@host:7687/database.

    User and password may also stand in NEO4J_USERNAME and NEO4J_PASSWORD. What goes wrong is one `DataError`.
    """
    try:
        import neo4j
    except ImportError:
        raise DataError("reading a Neo4j database needs its driver: pip install 'gamma-kg[neo4j]'") from None
    from neo4j.exceptions import DriverError, Neo4jError

    parts = urlsplit(address)
    host = parts.hostname or "localhost"
    user = unquote(parts.username) if parts.username else os.environ.get("NEO4J_USERNAME", "")
    password = unquote(parts.password) if parts.password else os.environ.get("NEO4J_PASSWORD", "")
    if ":" in host:
        host = f"[{host}]"
    try:
        target = f"{parts.scheme}://{host}:{parts.port or 7687}"
        with neo4j.GraphDatabase.driver(
            target,
            auth=(user, password) if user else None,
            connection_timeout=timeout,
            notifications_min_severity="OFF",
        ) as driver:
            with driver.session(database=parts.path.strip("/") or None) as session:
                yield session
    except (DriverError, Neo4jError, OSError, ValueError) as error:
        reason = str(getattr(error, "message", None) or error).splitlines()[0]
        raise DataError(f"{plain_address(address)}: {reason.replace(password, '…') if password else reason}") from error


def plain_address(address: str) -> str:
    """The address without user and password, for people to see."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def quoted(name: str) -> str:
    """A name as Cypher quotes it."""
    return f"`{name.replace('`', '``')}`"
