import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg import KnowledgeGraph
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.relation_graph import (
    EDGE_TYPES,
    INVERSE_TYPES,
    build_relation_graph,
    edges_of_parts,
    relation_graph_parts,
)
from gamma_kg.graph.relation_meetings import find_meetings

H2H, T2T, H2T, T2H = range(4)


def meetings(kg: KnowledgeGraph) -> set[tuple[int, int, int]]:
    graph = kg.relation_graph
    return set(zip(*(column.tolist() for column in graph.slice(0, graph.num_edges)), strict=True))


def test_a_chain_of_two_relations_meets_in_the_middle() -> None:
    kg = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "s", "c")])
    found = meetings(kg)
    r, s, num = 0, 1, 2
    assert (r, T2H, s) in found and (s, H2T, r) in found
    assert (r, H2H, s) not in found and (r, T2T, s) not in found
    # b is a head of s and, read backwards, a head of the inverse of r.
    assert (s, H2H, r + num) in found
    assert {(i, t, i) for i in range(4) for t in (H2H, T2T)} <= found, "every relation meets itself"


def test_a_relation_without_triples_has_no_edges() -> None:
    kg = KnowledgeGraph.from_triples([("a", "r", "b")], relations=["r", "unused"])
    assert all(i in (0, 2) and j in (0, 2) for i, _, j in meetings(kg))


def brute_force(triples: np.ndarray, num_relations: int) -> set[tuple[int, int, int]]:
    """The definition, with sets."""
    heads: dict[int, set[int]] = {r: set() for r in range(2 * num_relations)}
    tails: dict[int, set[int]] = {r: set() for r in range(2 * num_relations)}
    for h, r, t in triples.tolist():
        heads[r].add(h), tails[r].add(t)
        heads[r + num_relations].add(t), tails[r + num_relations].add(h)
    ends = {"h": heads, "t": tails}
    return {
        (i, number, j)
        for number, name in enumerate(EDGE_TYPES)
        for i in heads
        for j in heads
        if ends[name[0]][i] & ends[name[2]][j]
    }


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=25))
def test_the_sparse_product_equals_the_definition(triples: list[tuple[int, int, int]]) -> None:
    array = np.asarray(triples)
    kg = KnowledgeGraph(array, [str(i) for i in range(7)], [str(i) for i in range(4)])
    assert meetings(kg) == brute_force(array, 4)
    assert kg.relation_graph.num_edges == len(meetings(kg)), "each meeting is there once"
    assert isinstance(kg.relation_graph, Edges)


def some_graph(num_relations: int = 9, entities: int = 30, facts: int = 80) -> KnowledgeGraph:
    rng = np.random.default_rng(5)
    triples = rng.integers(0, [entities, num_relations, entities], size=(facts, 3))
    return KnowledgeGraph(triples, [str(i) for i in range(entities)], [str(i) for i in range(num_relations)])


def test_bands_and_blocks_of_any_size_give_the_same_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = some_graph()
    whole = kg.relation_graph
    monkeypatch.setattr("gamma_kg.graph.relation_meetings.BLOCK_GROUPS", 7)
    monkeypatch.setattr("gamma_kg.graph.relation_meetings.BAND_CELLS", 40)
    in_parts = edges_of_parts(relation_graph_parts(kg.edges, band_edges=50), kg.num_types, INVERSE_TYPES)
    for name in ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse"):
        assert getattr(whole, name).equal(getattr(in_parts, name)), name


def shared_heads(kg: KnowledgeGraph) -> np.ndarray:
    """How many heads every two relations share."""
    heads: list[set[int]] = [set() for _ in range(kg.num_types)]
    for h, r, t in kg.triples.tolist():
        heads[r].add(h), heads[r + kg.num_relations].add(t)
    return np.array([[len(mine & other) for other in heads] for mine in heads])


@pytest.mark.parametrize("band_cells", [1 << 20, 60])
def test_of_too_many_meetings_a_relation_keeps_those_of_most_heads(
    band_cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamma_kg.graph.relation_meetings.LEAST_KEPT", 4)
    kg = some_graph(num_relations=12, entities=60, facts=200)
    shared = shared_heads(kg)
    most = int((shared > 0).sum())
    share = (most - 1) // (2 * kg.num_types)
    assert share > 4
    kept = np.zeros_like(shared, dtype=bool)
    for i, row in enumerate(shared):
        best = sorted(np.flatnonzero(row), key=lambda j, row=row: (-row[j], j))
        kept[i, best[:share]] = True
    found = find_meetings(kg.edges, most=most - 1, band_cells=band_cells)
    assert (found.toarray() == (kept | kept.T)).all()
    assert found.nnz < (shared > 0).sum()
    assert found.toarray().diagonal().all(), "every relation meets itself"
    all_of_them = find_meetings(kg.edges, most=most, band_cells=band_cells)
    assert (all_of_them.toarray() == (shared > 0)).all(), "as many as are allowed all stay"


def test_an_entity_of_very_many_relations_says_nothing_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [("hub", f"r{i}", f"end {i}") for i in range(6)] + [("a", "r0", "b"), ("a", "r1", "c")]
    kg = KnowledgeGraph.from_triples(facts)
    with_hub = find_meetings(kg.edges).toarray()
    monkeypatch.setattr("gamma_kg.graph.relation_meetings.MOST_OF_NODE", 5)
    without = find_meetings(kg.edges).toarray()
    names = list(kg.relations)
    first, second, third = (names.index(f"r{i}") for i in range(3))
    assert with_hub[first, third] and with_hub[first, second]
    assert without[first, second] and not without[first, third]


def test_memory_does_not_grow_with_the_square_of_the_number_of_relations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamma_kg.graph.relation_meetings.MOST_MEETINGS", 50_000)
    monkeypatch.setattr("gamma_kg.graph.relation_meetings.BAND_CELLS", 50_000)
    monkeypatch.setattr("gamma_kg.graph.relation_graph.BAND_EDGES", 50_000)

    def peak(num_relations: int) -> int:
        """Bytes that building takes at most for each relation: all of them meet in one entity."""
        triples = np.column_stack((np.zeros(num_relations), np.arange(num_relations), np.arange(1, num_relations + 1)))
        edges = Edges.of_triples(triples.astype(np.int64), num_relations + 1, num_relations)
        tracemalloc.start()
        graph = build_relation_graph(edges)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert graph.num_edges < 8 * 50_000 + 8 * 16 * 2 * num_relations
        return most

    few, many = peak(1_000), peak(4_000)
    assert many < 5 * few
