import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg.analysis.halflinks import STRATA, halflink_strata
from gamma_kg.analysis.patterns import find_patterns
from gamma_kg.data.benchmark import load_benchmark
from gamma_kg.report.published import published

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "datasets"


def patterns_by_counting(triples, num_relations, min_support, min_confidence):
    """The definitions, word for word, with Python sets."""
    pairs = {r: {(h, t) for h, q, t in triples if q == r} for r in range(num_relations)}
    shows = {name: set() for name in ("symmetric", "anti-symmetric", "inverse", "composition")}

    def holds(left, right):
        return len(left) >= max(min_support, 1) and len(left & right) >= min_confidence * len(left)

    for r in pairs:
        reverse = {(t, h) for h, t in pairs[r]}
        if holds(pairs[r], reverse):
            shows["symmetric"].add(r)
        if len(pairs[r]) >= max(min_support, 1) and 1 - len(pairs[r] & reverse) / len(pairs[r]) >= min_confidence:
            shows["anti-symmetric"].add(r)
        for s in pairs:
            if s != r and holds({(t, h) for h, t in pairs[s]}, pairs[r]):
                shows["inverse"].add(r)
        for s, u in itertools.product(pairs, repeat=2):
            if holds({(x, z) for x, y in pairs[s] for w, z in pairs[u] if y == w}, pairs[r]):
                shows["composition"].add(r)
    return shows


@settings(max_examples=60, deadline=None)
@given(
    triples=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 4)), max_size=25),
    support=st.integers(0, 3),
    confidence=st.sampled_from([0.5, 0.75, 1.0]),
)
def test_patterns_agree_with_the_definitions(triples, support, confidence):
    array = np.array(triples, dtype=np.int64).reshape(-1, 3)
    found = find_patterns(array, 5, 4, min_support=support, min_confidence=confidence)
    wanted = patterns_by_counting(triples, 4, support, confidence)
    assert {name: set(np.flatnonzero(mask).tolist()) for name, mask in found.shows.items()} == wanted


def test_family_relations_show_what_they_should():
    # 0 spouse, 1 parent of, 2 child of, 3 grandparent of
    triples = [(0, 0, 1), (1, 0, 0), (0, 1, 2), (2, 2, 0), (2, 1, 3), (3, 2, 2), (0, 3, 3)]
    found = find_patterns(np.array(triples), 4, 4)
    names = {name: np.flatnonzero(mask).tolist() for name, mask in found.shows.items()}
    assert names["symmetric"] == [0]
    assert names["anti-symmetric"] == [1, 2, 3]
    assert names["inverse"] == [1, 2]
    assert 3 in names["composition"]
    assert found.triples_of(np.array([(0, 0, 1), (0, 1, 2)]))["symmetric"].tolist() == [True, False]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the benchmark files are not beside the project")
@pytest.mark.parametrize("name", ["nl-100", "fb-100", "codex-s", "metafam", "wn18rr-v4", "wn18rr"])
def test_counts_are_those_of_the_papers_table(name):
    triples, entities, relations = load_benchmark(name, SHARED).all_triples()
    found = find_patterns(np.concatenate(list(triples.values())), len(entities), len(relations))
    in_test = found.triples_of(triples["test"])
    for pattern, (num_relations, num_triples) in published().patterns[name].items():
        assert (found.counts()[pattern], in_test[pattern].sum()) == (num_relations, num_triples)


def test_half_links_of_tail_and_head_queries():
    graph = np.array([[0, 0, 1], [2, 0, 3]])
    # (source, relation, answer) with 2 relations: tail queries (h, r, ?) and head queries (?, r, t) as (t, r + 2).
    asked = [(0, 0, 3), (0, 0, 2), (1, 0, 3), (1, 0, 2), (3, 2, 0), (3, 2, 1), (0, 2, 0), (0, 3, 1)]
    source, relation, answer = np.array(asked).T
    strata = halflink_strata(graph, 4, 2, source, relation, answer)
    assert [STRATA[i].removesuffix(" seen") for i in strata] == [
        "both halves",
        "only query half",
        "only answer half",
        "neither half",
        "both halves",
        "only query half",
        "only answer half",
        "neither half",
    ]
