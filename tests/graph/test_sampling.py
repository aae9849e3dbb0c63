from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamma_kg.graph.sampling import (
    SubgraphOptions,
    TrainingGraph,
    sample_subgraph,
    strict_negatives,
)


def random_graph(seed: int, entities: int = 200, relations: int = 5, triples: int = 600) -> TrainingGraph:
    rng = np.random.default_rng(seed)
    ids = np.column_stack([rng.integers(n, size=triples) for n in (entities, relations, entities)])
    return TrainingGraph.build("random", ids, entities, relations)


def names(source_triples: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in source_triples.tolist()}


def original(piece, triples: np.ndarray) -> np.ndarray:
    return np.column_stack((piece.entity[triples[:, 0]], piece.relation[triples[:, 1]], piece.entity[triples[:, 2]]))


@pytest.mark.parametrize("seed", range(8))
def test_a_subgraph_holds_or_hides_exactly_the_facts_among_its_entities_and_relations(seed: int) -> None:
    graph = random_graph(seed)
    options = SubgraphOptions(entities=(20, 90), drop_chance=0.5, relation_drop_chance=0.5, max_triples=60)
    piece = sample_subgraph(graph, options, np.random.default_rng(seed))
    kept, hidden = names(original(piece, piece.triples)), names(original(piece, piece.hidden))
    entity, relation = set(piece.entity.tolist()), set(piece.relation.tolist())
    among = {(h, r, t) for h, r, t in names(graph.triples) if {h, t} <= entity and r in relation}
    assert kept | hidden == among
    assert not kept & hidden
    assert len(piece.triples) <= 60


def test_ids_of_a_subgraph_are_dense() -> None:
    piece = sample_subgraph(random_graph(1), SubgraphOptions(entities=(30, 60)), np.random.default_rng(0))
    assert set(piece.triples[:, [0, 2]].ravel().tolist()) == set(range(piece.num_entities))
    assert set(piece.triples[:, 1].tolist()) == set(range(piece.num_relations))


def test_a_subgraph_from_one_seed_is_connected_and_has_the_size_asked_for() -> None:
    chain = np.array([(i, 0, i + 1) for i in range(99)])
    graph = TrainingGraph.build("chain", chain, 100, 1)
    options = SubgraphOptions(entities=(30, 30), seeds=(1, 1), drop_chance=0)
    for seed in range(5):
        piece = sample_subgraph(graph, options, np.random.default_rng(seed))
        assert piece.num_entities == 30
        assert np.ptp(piece.entity) == 29


def test_growth_goes_on_elsewhere_when_a_component_is_used_up() -> None:
    pairs = np.array([(2 * i, 0, 2 * i + 1) for i in range(50)])
    graph = TrainingGraph.build("pairs", pairs, 100, 1)
    piece = sample_subgraph(graph, SubgraphOptions(entities=(20, 20), drop_chance=0), np.random.default_rng(0))
    assert 18 <= piece.num_entities <= 20


def test_a_graph_smaller_than_the_bounds_is_taken_whole() -> None:
    graph = random_graph(3, entities=12, triples=80)
    piece = sample_subgraph(graph, SubgraphOptions(drop_chance=0), np.random.default_rng(0))
    assert names(original(piece, piece.triples)) == names(graph.triples)


def test_the_same_generator_state_gives_the_same_subgraph() -> None:
    graph = random_graph(4)
    first, second = (sample_subgraph(graph, SubgraphOptions(entities=(20, 90)), np.random.default_rng(9)) for _ in "12")
    assert np.array_equal(first.triples, second.triples)
    assert np.array_equal(first.hidden, second.hidden)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 5))
def test_negatives_are_never_known_answers(seed: int, num_entities: int, num_queries: int) -> None:
    rng = np.random.default_rng(seed)
    known_BN = rng.random((num_queries, num_entities)) < rng.random()
    owner, answer = known_BN.nonzero()
    negatives, has_any = strict_negatives(owner, answer, num_queries, num_entities, 50, rng)
    assert has_any.tolist() == (~known_BN.all(axis=1)).tolist()
    drawn_known = np.take_along_axis(known_BN, negatives, axis=1)
    assert not drawn_known[has_any].any()


def test_negatives_are_uniform_over_what_is_not_known() -> None:
    owner, answer = np.array([0, 0, 0]), np.array([1, 2, 5])
    negatives, _ = strict_negatives(owner, answer, 1, 7, 40_000, np.random.default_rng(0))
    counts = np.bincount(negatives[0], minlength=7)
    assert counts[[1, 2, 5]].sum() == 0
    assert abs(counts[[0, 3, 4, 6]] - 10_000).max() < 500
