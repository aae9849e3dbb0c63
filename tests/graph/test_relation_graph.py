import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg import KnowledgeGraph
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.relation_graph import EDGE_TYPES, build_relation_graph, relation_graph_parts

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


def test_bands_and_blocks_of_any_size_give_the_same_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    kg = KnowledgeGraph(rng.integers(0, [30, 9, 30], size=(80, 3)), [str(i) for i in range(30)], [*"abcdefghi"])
    whole = kg.relation_graph
    monkeypatch.setattr("gamma_kg.graph.relation_graph.BLOCK_GROUPS", 7)
    in_parts = build_relation_graph(kg.edges, band_bytes=3 * 2 * 18)
    for name in ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse"):
        assert getattr(whole, name).equal(getattr(in_parts, name)), name


def test_memory_does_not_grow_with_the_square_of_the_number_of_relations() -> None:
    def peak(num_relations: int) -> tuple[int, int]:
        """Bytes that building takes at most, and how many edges it gives: all relations meet in one entity."""
        triples = np.column_stack((np.zeros(num_relations), np.arange(num_relations), np.arange(1, num_relations + 1)))
        edges = Edges.of_triples(triples.astype(np.int64), num_relations + 1, num_relations)
        tracemalloc.start()
        found = sum(int(count.sum()) for count, _ in relation_graph_parts(edges, band_bytes=1 << 16))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most, found

    few, many = peak(500), peak(2_000)
    assert many[1] > 15 * few[1], "as many edges as there are pairs"
    assert many[0] < 2 * few[0]
