from __future__ import annotations

import numpy as np
import pytest
import torch

from gamma_kg.graph.sampling import TrainingGraph
from gamma_kg.training.batch import Batch, PreparedGraph, make_batch


@pytest.fixture
def graph(training_graph: TrainingGraph) -> PreparedGraph:
    rng = np.random.default_rng(0)
    hidden = rng.random(training_graph.num_triples) < 0.3
    return PreparedGraph.build(training_graph.triples[~hidden], 60, 3, training_graph.triples[hidden])


def facts(graph: PreparedGraph, hidden_too: bool) -> set[tuple[int, int, int]]:
    if not hidden_too:
        node, kind, neighbour = graph.edges.slice(0, graph.edges.num_edges)
        return set(zip(node.tolist(), kind.tolist(), neighbour.tolist(), strict=True))
    query = np.repeat(graph.known.query, np.diff(graph.known.ptr))
    (source, relation), answer = np.divmod(query, 2 * graph.num_relations), graph.known.answer
    return set(zip(source.tolist(), relation.tolist(), answer.tolist(), strict=True))


def batch_facts(batch: Batch) -> set[tuple[int, int, int]]:
    node, kind, neighbour = batch.edges.slice(0, batch.edges.num_edges)
    return set(zip(node.tolist(), kind.tolist(), neighbour.tolist(), strict=True))


def named(batch: Batch, mask_BC: torch.Tensor) -> list[tuple[int, int, int]]:
    rows, columns = mask_BC.nonzero().T
    entity = columns if batch.candidate_BC is None else batch.candidate_BC[rows, columns]
    return list(zip(batch.source_B[rows].tolist(), batch.relation_B[rows].tolist(), entity.tolist(), strict=True))


@pytest.mark.parametrize("negatives", [5, "all"])
@pytest.mark.parametrize("max_answers", [1, 4])
def test_right_answers_are_facts_the_graph_no_longer_shows_and_wrong_ones_are_no_facts(
    graph: PreparedGraph, negatives: int | str, max_answers: int
) -> None:
    known = facts(graph, hidden_too=True)
    for seed in range(10):
        batch = make_batch(graph, 12, negatives, max_answers, np.random.default_rng(seed))
        shown = batch_facts(batch)
        for s, r, answer in named(batch, batch.right_BC):
            inverse = (answer, (r + 3) % 6, s)
            assert (s, r, answer) in known
            assert (s, r, answer) not in shown
            assert inverse not in shown
        assert not known & set(named(batch, batch.wrong_BC))
        assert batch.right_BC.any(dim=1).all()


def test_with_all_entities_nothing_but_visible_facts_is_left_out(graph: PreparedGraph) -> None:
    batch = make_batch(graph, 12, "all", 3, np.random.default_rng(1))
    shown = batch_facts(batch)
    neither = ~(batch.right_BC | batch.wrong_BC)
    assert neither.any()
    assert set(named(batch, neither)) <= shown
    assert not (batch.right_BC & batch.wrong_BC).any()


def test_half_of_the_queries_ask_for_tails_and_half_for_heads(graph: PreparedGraph) -> None:
    batch = make_batch(graph, 10, 5, 1, np.random.default_rng(0))
    assert (batch.relation_B[:5] < 3).all()
    assert (batch.relation_B[5:] >= 3).all()


def test_one_answer_per_query_removes_only_the_drawn_facts(graph: PreparedGraph) -> None:
    batch = make_batch(graph, 6, 5, 1, np.random.default_rng(0))
    assert graph.edges.num_edges - batch.edges.num_edges <= 12
    assert batch.right_BC.sum(1).tolist() == [1] * 6
    gone = facts(graph, hidden_too=False) - batch_facts(batch)
    drawn = set(named(batch, batch.right_BC))
    assert gone == drawn | {(t, (r + 3) % 6, h) for h, r, t in drawn}


def test_the_relation_graph_is_that_of_the_whole_graph(graph: PreparedGraph) -> None:
    assert make_batch(graph, 12, 5, 1, np.random.default_rng(0)).relation_graph is graph.relation_graph


def test_several_answers_come_first_and_never_twice(graph: PreparedGraph) -> None:
    batch = make_batch(graph, 30, 5, 4, np.random.default_rng(2))
    assert batch.candidate_BC is not None
    assert batch.candidate_BC.shape == (30, 9)
    assert batch.right_BC[:, 0].all()
    assert batch.right_BC.sum() > 30
    assert not batch.right_BC[:, 4:].any()
    rights = [(row, e) for row in range(30) for e in batch.candidate_BC[row][batch.right_BC[row]].tolist()]
    assert len(rights) == len(set(rights))


def test_a_graph_with_fewer_facts_than_the_batch_repeats_them() -> None:
    graph = PreparedGraph.build(np.array([(0, 0, 1), (1, 0, 2)]), 3, 1)
    batch = make_batch(graph, 8, 2, 1, np.random.default_rng(0))
    assert len(batch) == 8
    assert batch.edges.num_edges in (0, 2)


def test_a_query_that_everything_answers_has_no_wrong_answers() -> None:
    graph = PreparedGraph.build(np.array([(0, 0, 0), (0, 0, 1)]), 2, 1)
    batch = make_batch(graph, 2, 3, 1, np.random.default_rng(0))
    assert not batch.wrong_BC[batch.relation_B == 0].any()


def test_parts_of_a_batch_share_its_graph(graph: PreparedGraph) -> None:
    batch = make_batch(graph, 10, "all", 1, np.random.default_rng(0))
    first, second = batch.part(0, 5), batch.part(5, 10)
    assert first.edges is second.edges is batch.edges
    assert torch.equal(torch.cat((first.right_BC, second.right_BC)), batch.right_BC)


def test_only_facts_with_another_way_between_their_ends_are_asked_for() -> None:
    ring = [(i, 0, (i + 1) % 4) for i in range(4)]
    chain = [(i, 0, i + 1) for i in range(4, 40)]
    graph = PreparedGraph.build(np.array([*ring, (0, 0, 4), *chain]), 41, 1)
    asked = {
        fact for seed in range(20) for fact in asked_for(make_batch(graph, 8, "all", 1, np.random.default_rng(seed)))
    }
    assert len(asked) > 30
    near = {
        fact
        for seed in range(20)
        for fact in asked_for(make_batch(graph, 8, "all", 1, np.random.default_rng(seed), near=4))
    }
    assert near == {*ring}
    # Where no fact is linked otherwise, any is asked for.
    lone = PreparedGraph.build(np.array(chain), 41, 1)
    assert asked_for(make_batch(lone, 8, "all", 1, np.random.default_rng(0), near=4)) <= {*chain}


def asked_for(batch: Batch) -> set[tuple[int, int, int]]:
    """The facts behind the queries of a graph with one relation, as they are read."""
    found = named(batch, batch.right_BC)
    return {(s, 0, answer) if r == 0 else (answer, 0, s) for s, r, answer in found}
