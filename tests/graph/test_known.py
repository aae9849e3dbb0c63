"""Known answers of queries, from both ends of each fact."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gamma_kg.graph.known import KnownAnswers


def test_answers_are_found_from_both_ends_and_unknown_queries_have_none() -> None:
    known = KnownAnswers.build(np.array([[0, 0, 1], [0, 0, 2], [0, 0, 1], [2, 1, 0]]), 3, 2)
    row, entity = known.of(np.array([0, 1, 2, 2]), np.array([0, 2, 0, 1]))
    assert list(zip(row.tolist(), entity.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (3, 0)]
    nothing = KnownAnswers.build(np.empty((0, 3), dtype=np.int64), 3, 2)
    assert [len(part) for part in nothing.of(np.array([0]), np.array([1]))] == [0, 0]


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 3))
def test_answers_agree_with_looking_through_all_facts(seed: int, num_entities: int, num_relations: int) -> None:
    rng = np.random.default_rng(seed)
    triples = rng.integers(0, [num_entities, num_relations, num_entities], size=(8, 3))
    known = KnownAnswers.build(triples, num_entities, num_relations)
    source, relation = rng.integers(num_entities, size=5), rng.integers(2 * num_relations, size=5)
    facts = {(h, r, t) for h, r, t in triples.tolist()} | {(t, r + num_relations, h) for h, r, t in triples.tolist()}
    expected = [
        (row, answer)
        for row, query in enumerate(zip(source.tolist(), relation.tolist(), strict=True))
        for answer in range(num_entities)
        if (*query, answer) in facts
    ]
    owner, answer = known.of(source, relation)
    assert list(zip(owner.tolist(), answer.tolist(), strict=True)) == expected


def test_relations_between_two_of_two_million_entities_are_found() -> None:
    # head · 2N + tail, times the number of relations, is past 2^63 here.
    size = 2_000_000
    head, tail = np.array([size - 1, size - 1, 0]), np.array([size - 2, size - 2, 5])
    relation = np.array([1_999_999, 3, 4])
    known = KnownAnswers.of_queries(head, tail, relation, size, size, size)
    row, found = known.of(np.array([0, size - 1]), np.array([5, size - 2]))
    assert list(zip(row.tolist(), found.tolist(), strict=True)) == [(0, 4), (1, 3), (1, 1_999_999)]
