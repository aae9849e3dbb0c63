"""What is in a graph: counts, relations with an example and what they are like, types, components, degrees."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gamma_kg.data.vocabulary import Vocabulary
from gamma_kg.graph.type_relations import says_type
from gamma_kg.io.shown import html_text, shown

if TYPE_CHECKING:
    from gamma_kg.graph.graph import KnowledgeGraph

# A pattern is named when at least so many facts speak for it and this share of them does.
MIN_FACTS = 10
MIN_SHARE = 0.97
# Up to so many facts everything is sorted; of larger graphs only what one pass over them tells is told.
MAX_SORTED = 20_000_000
SHOWN_RELATIONS = 30
SHOWN_TYPES = 10
SHOWN_NAMES = 20


@dataclass(frozen=True)
class RelationFacts:
    """One relation: how often it is used, by how many heads and tails, one of its facts, what its facts are like."""

    name: str
    identifier: str
    facts: int
    heads: int | None  # None in a graph that is too large to sort
    tails: int | None
    example: tuple[str, str]
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """What `describe` found; `str` of it is for reading, `to_dict` for programs."""

    entities: int
    relations: int
    facts: int
    relation_facts: tuple[RelationFacts, ...]  # most facts first
    types: tuple[tuple[str, int], ...]  # name, how many entities are of it; most first
    components: int | None  # None in a graph that is too large to look through
    largest_component: int | None
    isolated: int  # entities without a fact
    mean_degree: float
    median_degree: float
    most_connected: tuple[tuple[str, int], ...]
    query_seconds: float | None = None
    query_note: str = ""
    found_names: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return lines_of(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html_text(r.name)}</td><td style='text-align:right'>{r.facts:,}</td>"
            f"<td>{html_text(' → '.join(r.example))}</td><td>{html_text('; '.join(r.patterns))}</td></tr>"
            for r in self.relation_facts[:SHOWN_RELATIONS]
        )
        lines = "".join(f"<li>{html_text(line)}</li>" for line in _summary(self))
        return (
            f"<ul>{lines}</ul><table><thead><tr><th>relation</th><th>facts</th><th>example</th><th>its facts</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>"
        )


def describe(
    kg: KnowledgeGraph,
    *,
    search: str | None = None,
    patterns: Callable[[int], Sequence[str]] | None = None,
    ask: Callable[[int, int], str] | None = None,
) -> Description:
    """Looks at a graph. `patterns(relation)` may say more of a relation than is counted here; `ask(head, relation)` is
    called to time a query and returns a remark."""
    count_R = np.zeros(kg.num_relations, dtype=np.int64)
    first_R = np.zeros((kg.num_relations, 2), dtype=np.int64)
    degree_N = np.zeros(kg.num_entities, dtype=np.int64)
    for block in kg.triple_blocks():
        triples = block.numpy()
        relations, first = np.unique(triples[:, 1], return_index=True)
        is_new = count_R[relations] == 0
        first_R[relations[is_new]] = triples[first[is_new]][:, [0, 2]]
        count_R += np.bincount(triples[:, 1], minlength=kg.num_relations)
        degree_N += np.bincount(triples[:, [0, 2]].ravel(), minlength=kg.num_entities)
    is_whole = kg.num_triples <= MAX_SORTED
    facts_R = _by_relation(kg) if is_whole else None
    sizes = _component_sizes(kg.triples.numpy(), kg.num_entities, degree_N) if is_whole else None
    seconds, note = _timed(kg, ask) if ask is not None and kg.num_triples else (None, "")
    top = np.argsort(-degree_N, kind="stable")[:5]
    return Description(
        entities=kg.num_entities,
        relations=kg.num_relations,
        facts=kg.num_triples,
        relation_facts=tuple(
            _relation(
                kg, int(r), int(count_R[r]), first_R[r].tolist(), None if facts_R is None else facts_R[r], patterns
            )
            for r in np.argsort(-count_R, kind="stable")
            if count_R[r]
        ),
        types=() if facts_R is None else _types(kg, facts_R),
        components=None if sizes is None else len(sizes),
        largest_component=None if sizes is None else int(sizes.max(initial=0)),
        isolated=int((degree_N == 0).sum()),
        mean_degree=float(degree_N.mean()) if len(degree_N) else 0.0,
        median_degree=float(np.median(degree_N)) if len(degree_N) else 0.0,
        most_connected=tuple((kg.entities[int(i)], int(degree_N[i])) for i in top if degree_N[i]),
        query_seconds=seconds,
        query_note=note,
        found_names=None if search is None else tuple(find_names(kg, search)),
    )


def find_names(kg: KnowledgeGraph, word: str, limit: int = SHOWN_NAMES) -> list[str]:
    """Names of relations and entities that start with the word, then those that hold it, then those that look alike."""
    found: dict[str, None] = {}
    for names in (kg.relations, kg.entities):
        found.update(dict.fromkeys(names.search(word, limit)))
        if isinstance(names, Vocabulary):
            wanted = word.casefold()
            found.update(dict.fromkeys(islice((name for name in names if wanted in name.casefold()), limit)))
    if not found:
        found.update(dict.fromkeys([*kg.relations.nearest(word), *kg.entities.nearest(word)]))
    return list(found)[:limit]


def relation_patterns(triples: NDArray[np.int64], num_entities: int) -> list[str]:
    """What the facts of one relation, int64 [n, 3], are like; each sentence with its numbers."""
    head, tail = triples[:, 0], triples[:, 2]
    pair = np.unique(head * num_entities + tail)
    apart = pair[pair // num_entities != pair % num_entities]
    said = []
    if len(apart) >= MIN_FACTS:
        back = (apart % num_entities) * num_entities + apart // num_entities
        both = int(np.isin(back, apart).sum())
        if both >= MIN_SHARE * len(apart):
            said.append(f"symmetric: {both:,} of {len(apart):,} facts also hold in reverse")
        elif both == 0:
            said.append(f"never symmetric: 0 of {len(apart):,} facts also hold in reverse")
    if len(pair) > len(apart):
        said.append(f"{len(pair) - len(apart):,} facts from a thing to itself")
    heads, tails = len(np.unique(head)), len(np.unique(tail))
    if heads >= MIN_FACTS and heads >= MIN_SHARE * len(pair):
        said.append(f"one tail a head: {heads:,} heads, {len(pair):,} facts")
    if tails >= MIN_FACTS and tails >= MIN_SHARE * len(pair):
        said.append(f"one head a tail: {tails:,} tails, {len(pair):,} facts")
    return said


def lines_of(found: Description) -> str:
    """The description as lines for a terminal."""
    lines = _summary(found)
    lines.append("relations, most facts first:")
    for r in found.relation_facts[:SHOWN_RELATIONS]:
        ends = "" if r.heads is None else f", {r.heads:,} heads, {r.tails:,} tails"
        lines.append(f"  {r.name}  {r.facts:,} facts{ends}; {' → '.join(r.example)}")
        if r.patterns:
            lines.append(f"      {'; '.join(r.patterns)}")
    if len(found.relation_facts) > SHOWN_RELATIONS:
        lines.append(f"  … and {len(found.relation_facts) - SHOWN_RELATIONS} more (all with --json)")
    if found.found_names is not None:
        lines.append("names found:" if found.found_names else "names found: none")
        lines += [f"  {name}" for name in found.found_names]
    return "\n".join(shown(line) for line in lines)


def _summary(found: Description) -> list[str]:
    lines = [f"{found.facts:,} facts about {found.entities:,} entities in {found.relations:,} relations"]
    if found.types:
        lines.append("types: " + ", ".join(f"{name} ({count:,})" for name, count in found.types))
    alone = f", {found.isolated:,} entities without a fact" if found.isolated else ""
    if found.components is not None:
        lines.append(f"components: {found.components:,}, the largest with {found.largest_component:,} entities{alone}")
    most = ", ".join(f"{name} ({degree:,})" for name, degree in found.most_connected)
    lines.append(
        f"facts per entity: {found.mean_degree:.1f} on average, median {found.median_degree:.0f}; most: {most}"
    )
    if found.query_seconds is not None:
        lines.append(f"a query takes about {found.query_seconds:.2g} s here{found.query_note}")
    return lines


def _by_relation(kg: KnowledgeGraph) -> list[NDArray[np.int64]]:
    """The triples of each relation, int64 [n, 3]."""
    triples = kg.triples.numpy()
    order = np.argsort(triples[:, 1], kind="stable")
    cuts = np.searchsorted(triples[order, 1], np.arange(kg.num_relations + 1))
    return [triples[order[cuts[r] : cuts[r + 1]]] for r in range(kg.num_relations)]


def _relation(
    kg: KnowledgeGraph,
    relation: int,
    count: int,
    example: list[int],
    triples: NDArray[np.int64] | None,
    patterns: Callable[[int], Sequence[str]] | None,
) -> RelationFacts:
    said: Sequence[str] = ()
    if triples is not None:
        said = relation_patterns(triples, kg.num_entities) if patterns is None else patterns(relation)
    return RelationFacts(
        name=kg.relations[relation],
        identifier=kg.relations.identifier(relation),
        facts=count,
        heads=None if triples is None else len(np.unique(triples[:, 0])),
        tails=None if triples is None else len(np.unique(triples[:, 2])),
        example=(kg.entities[example[0]], kg.entities[example[1]]),
        patterns=tuple(said),
    )


def _types(kg: KnowledgeGraph, facts_R: list[NDArray[np.int64]]) -> tuple[tuple[str, int], ...]:
    counts: dict[int, int] = {}
    for relation in range(kg.num_relations):
        if says_type(kg.relations, relation):
            tails, number = np.unique(facts_R[relation][:, 2], return_counts=True)
            for tail, count in zip(tails.tolist(), number.tolist(), strict=True):
                counts[tail] = counts.get(tail, 0) + count
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_TYPES]
    return tuple((kg.entities[tail], count) for tail, count in best)


def _component_sizes(triples: NDArray[np.int64], num_entities: int, degree_N: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many entities each component with a fact has."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(triples), dtype=np.int8)
    links = coo_array((ones, (triples[:, 0], triples[:, 2])), shape=(num_entities, num_entities))
    _, label_N = connected_components(links, directed=False)
    sizes: NDArray[np.int64] = np.unique(label_N[degree_N > 0], return_counts=True)[1]
    return sizes


def _timed(kg: KnowledgeGraph, ask: Callable[[int, int], str]) -> tuple[float, str]:
    """Seconds of a second query: the first one also pays for what is kept for all."""
    head, relation, _ = next(iter(kg.triple_blocks()))[0].tolist()
    ask(head, relation)
    start = time.perf_counter()
    note = ask(head, relation)
    return time.perf_counter() - start, note
