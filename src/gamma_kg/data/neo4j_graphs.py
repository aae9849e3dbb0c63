"""Property graphs of Neo4j (and what speaks Bolt like it): every relationship is a fact, every label of a node too.

Read by Cypher in pages that follow the ids of relationships, so that a page costs the same wherever it lies. A node is
shown by its name, title, label or id property and identified by its element id (neo4j:4:…:17), by which accepted facts
find their nodes again when they are written back.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from gamma_kg.data.encoder import TripleEncoder
from gamma_kg.data.names import LABEL_PROPERTIES, RdfNames
from gamma_kg.data.options import Tally
from gamma_kg.errors import DataError

Result = TypeVar("Result")
Row = dict[str, Any]
Run = Callable[..., list[Row]]  # of a Cypher query and its parameters

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


# A database that answered nonsense, or nothing, is told goodbye for no longer than this.
LAST_WORDS_SECONDS = 1.0
# What the columns of a page hold.
ROW: dict[str, type] = {"id": str, "relation": str} | {
    f"{end}{part}": kind for end in ("head", "tail") for part, kind in (("", str), ("_names", dict), ("_labels", list))
}


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
    done, after, seen = 0, None, set[str]()
    with session_of(address, options.timeout) as run:
        while True:
            size = options.page_size if options.limit is None else min(options.page_size, options.limit - done)
            rows = run(query, after=after, size=size)
            for row in rows:
                _check_row(row, address)
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
            after = rows[-1]["id"]
            if after in seen:
                raise DataError(f"{plain_address(address)}: the same page came twice; is it a Neo4j database?")
            seen.add(after)
    return names


def _check_row(row: Row, address: str) -> None:
    """A row is what was asked for, or the database does not understand the question."""
    for name, kind in ROW.items():
        found = row.get(name)
        is_right = isinstance(found, kind)
        if isinstance(found, list):
            is_right = is_right and all(isinstance(label, str) for label in found)
        if not is_right:
            raise DataError(
                f"{plain_address(address)}: a row has {str(found)[:80]!r} as its {name}, expected a {kind.__name__}; "
                "is it a Neo4j database?"
            )


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


@contextlib.contextmanager
def session_of(address: str, timeout: float) -> Iterator[Run]:
    """Runs queries in the database of an address such as neo4j://user:password@host:7687/database.

    User and password may also stand in NEO4J_USERNAME and NEO4J_PASSWORD. What goes wrong is one `DataError`; a query
    that is not answered within `timeout` seconds is, too.
    """
    try:
        import neo4j
    except ImportError:
        raise DataError("reading a Neo4j database needs its driver: pip install 'gamma-kg[neo4j]'") from None

    parts, shown = urlsplit(address), plain_address(address)
    host = parts.hostname or "localhost"
    user = unquote(parts.username) if parts.username else os.environ.get("NEO4J_USERNAME", "")
    password = unquote(parts.password) if parts.password else os.environ.get("NEO4J_PASSWORD", "")
    if ":" in host:
        host = f"[{host}]"

    def asked(work: Callable[[], Result]) -> Result:
        try:
            return _within(timeout, work)
        except TimeoutError:
            raise DataError(f"{shown}: no answer within {timeout:g} s; is it a Neo4j database?") from None
        except Exception as error:  # a server that answers nonsense brings up any error inside the driver
            reason = str(getattr(error, "message", None) or error or type(error).__name__).splitlines()[0]
            raise DataError(f"{shown}: {reason.replace(password, '…') if password else reason}") from error

    def open_session() -> tuple[neo4j.Driver, neo4j.Session]:
        driver = neo4j.GraphDatabase.driver(
            f"{parts.scheme}://{host}:{parts.port or 7687}",
            auth=(user, password) if user else None,
            connection_timeout=timeout,
            connection_acquisition_timeout=timeout,
            notifications_min_severity="OFF",
        )
        return driver, driver.session(database=parts.path.strip("/") or None)

    driver, session = asked(open_session)

    def close() -> None:
        with driver, session:
            pass

    try:
        yield lambda query, **parameters: asked(lambda: [dict(record) for record in session.run(query, parameters)])
    except BaseException:
        with contextlib.suppress(Exception):
            _within(min(timeout, LAST_WORDS_SECONDS), close)
        raise
    asked(close)


def _within(seconds: float, work: Callable[[], Result]) -> Result:
    """What a function returns or raises, or a `TimeoutError`: the driver itself waits for a silent server for ever.

    It then goes on in a thread that ends with the process.
    """
    told: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            told.put((work(), None))
        except BaseException as error:
            told.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        found, error = told.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return found  # type: ignore[return-value]


def plain_address(address: str) -> str:
    """The address without user and password, for people to see."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def quoted(name: str) -> str:
    """A name as Cypher quotes it."""
    return f"`{name.replace('`', '``')}`"
