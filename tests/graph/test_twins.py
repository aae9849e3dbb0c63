"""Entities with the same neighbours are computed once, and the scores are those of computing all of them."""

import numpy as np
import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.graph import twins as twins_module
from gamma_kg.graph.starts import Starts
from gamma_kg.graph.twins import Twins, twins_of

HUBS, LEAVES = 6, 60


def sparse_graph(seed: int = 0) -> KnowledgeGraph:
    """Leaves that hang on hubs by one or two facts, one of them twice; hubs that know each other; three loners."""
    rng = np.random.default_rng(seed)
    facts = [(h, 0, (h + 1) % HUBS) for h in range(HUBS)]
    for leaf in range(HUBS, HUBS + LEAVES):
        kind = int(rng.integers(0, 8))
        facts += [(leaf, 1 + kind % 2, kind % HUBS)] * (2 if kind == 7 else 1)
        if kind == 5:
            facts.append((0, 2, leaf))
    names = [f"e{i}" for i in range(HUBS + LEAVES + 3)]
    return KnowledgeGraph(np.array(facts), names, ["knows", "hangs on", "likes"], keep_duplicates=True)


def twins_in(kg: KnowledgeGraph) -> Twins:
    found = twins_of(kg.edges)
    assert found is not None
    return found


def kinds_by_hand(kg: KnowledgeGraph) -> list[list[tuple[int, int]]]:
    node, type_, neighbour = kg.edges.slice(0, kg.edges.num_edges)
    edges = list(zip(node.tolist(), type_.tolist(), neighbour.tolist(), strict=True))
    return [[(t, v) for u, t, v in edges if u == entity] for entity in range(kg.num_entities)]


def test_twins_are_those_with_the_same_edges() -> None:
    kg, kinds = sparse_graph(), kinds_by_hand(sparse_graph())
    twins = twins_in(kg)
    for i, mine in enumerate(kinds):
        assert [int(twins.row_N[j] == twins.row_N[i]) for j in range(len(kinds))] == [int(k == mine) for k in kinds]
    distinct = [k for i, k in enumerate(kinds) if k not in kinds[:i]]
    shared = [k for k in distinct if kinds.count(k) > 1]
    assert twins.edges.num_nodes == len(distinct) + len(shared) < len(kinds) / 2


def scores(gamma: Gamma, kg: KnowledgeGraph, starts: Starts, relation: torch.Tensor, twins: Twins | None) -> np.ndarray:
    found = np.empty((len(starts), kg.num_entities))
    for batch in gamma.score_batches(kg, starts, relation, local="off", twins=twins):
        found[batch.query] = batch.dense()[batch.row]
    return found


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_whole_graph_from_any_entity(seed: int, small_gamma: Gamma) -> None:
    kg = sparse_graph(seed)
    starts, relation = Starts.single(torch.arange(kg.num_entities)), torch.arange(kg.num_entities) % kg.num_types
    whole = scores(small_gamma, kg, starts, relation, None)
    np.testing.assert_allclose(scores(small_gamma, kg, starts, relation, twins_in(kg)), whole, atol=1e-5)
    assert np.abs(whole - whole[:1]).max() > 0.01  # they do differ from start to start


def test_one_twin_may_be_weighed_otherwise_than_the_rest_and_two_may_not(small_gamma: Gamma) -> None:
    kg = sparse_graph()
    twins = twins_in(kg)
    weight_N = torch.rand(kg.num_entities)[twins.row_N]  # all twins alike
    group = max(range(len(twins.some_C3)), key=lambda g: int((twins.group_N == g).sum()))
    one, two, *_ = (twins.group_N == group).nonzero()[:, 0].tolist()
    alike, odd, odder = (weight_N.clone() for _ in range(3))
    odd[two] = 0.9
    odder[one], odder[two] = 0.8, 0.9
    loner = torch.zeros(kg.num_entities)
    loner[one] = 1
    for weight_BN in (torch.stack((alike, odd, loner)), torch.stack((odd, odder))):
        starts, relation = Starts.of_dense(weight_BN), torch.arange(len(weight_BN))
        whole = scores(small_gamma, kg, starts, relation, None)
        np.testing.assert_allclose(scores(small_gamma, kg, starts, relation, twins), whole, atol=1e-5)
    assert twins.merged(Starts.of_dense(torch.stack((alike, odd, loner)))) is not None
    assert twins.merged(Starts.of_dense(odder[None])) is None


def test_equal_sums_alone_make_no_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = twins_in(sparse_graph()).row_N
    monkeypatch.setattr(twins_module, "_mixed", lambda number: np.zeros(len(number), np.uint64))
    found = twins_of(sparse_graph().edges)
    for i in range(len(expected)) if found is not None else ():
        same = (found.row_N == found.row_N[i]) & (expected != expected[i])
        assert not bool(same.any())


def test_a_graph_with_few_twins_is_left_as_it_is() -> None:
    kg = KnowledgeGraph.from_triples([(f"a{i}", "next", f"a{i + 1}") for i in range(50)])
    assert twins_of(kg.edges) is None
