import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.kernels.union import part_of_union

Triples = list[tuple[int, int, int]]
triples_of = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=20)


def build(triples: Triples, num_nodes: int = 6, num_types: int = 3) -> Edges:
    """Edges exactly as given: every type is its own inverse here."""
    node, type_, neighbour = np.asarray(triples, dtype=np.int64).reshape(-1, 3).T
    return Edges.build(node, type_, neighbour, num_nodes, np.arange(num_types))


def as_list(edges: EdgeGroups) -> Triples:
    return list(zip(*(column.tolist() for column in edges.slice(0, edges.num_edges)), strict=True))


def test_edges_are_grouped_by_node_and_type() -> None:
    edges = build([(2, 1, 0), (0, 1, 5), (0, 0, 3), (0, 1, 4)])
    assert edges.node_ptr.tolist() == [0, 2, 2, 3, 3, 3, 3]
    assert edges.group_type.tolist() == [0, 1, 1]
    assert edges.group_ptr.tolist() == [0, 1, 3, 4]
    assert edges.neighbour.tolist() == [3, 4, 5, 0]
    assert edges.group_node.tolist() == [0, 0, 2]


@given(triples_of)
def test_building_keeps_every_edge_and_every_copy(triples: Triples) -> None:
    assert as_list(build(triples)) == sorted(triples)


@given(triples_of, st.integers(0, 20), st.integers(0, 20))
def test_a_slice_is_that_part_of_the_sorted_list(triples: Triples, first: int, second: int) -> None:
    edges = build(triples)
    start, stop = sorted((min(first, len(triples)), min(second, len(triples))))
    part = list(zip(*(column.tolist() for column in edges.slice(start, stop)), strict=True))
    assert part == sorted(triples)[start:stop]


@settings(max_examples=60)
@given(triples_of, triples_of)
def test_removing_edges_leaves_all_others_in_their_groups(triples: Triples, removed: Triples) -> None:
    edges = build(triples)
    node, type_, neighbour = torch.tensor(removed, dtype=torch.long).reshape(-1, 3).T
    left = edges.without(edges.find(node, type_, neighbour))
    assert as_list(left) == sorted(t for t in triples if t not in removed)
    assert left.group_type is edges.group_type, "groups stay as they are: nothing is sorted again"


@settings(max_examples=60)
@given(triples_of, st.lists(triples_of, min_size=1, max_size=4))
def test_copies_side_by_side_are_each_less_their_own_edges(triples: Triples, removals: list[Triples]) -> None:
    edges = build(triples)
    copy = torch.tensor([n for n, removed in enumerate(removals) for _ in removed], dtype=torch.long)
    gone = [edge for removed in removals for edge in removed]
    node, type_, neighbour = torch.tensor(gone, dtype=torch.long).reshape(-1, 3).T
    copies = edges.copies_without(len(removals), copy, node, type_, neighbour)
    assert copies.num_nodes == len(removals) * edges.num_nodes
    parts = [part_of_union(copies, slice(n * edges.num_nodes, (n + 1) * edges.num_nodes)) for n in range(len(removals))]
    assert [as_list(part) for part in parts] == [sorted(t for t in triples if t not in gone) for gone in removals]


def test_an_empty_graph_has_no_groups() -> None:
    edges = build([], num_nodes=3)
    assert (edges.num_edges, edges.num_groups, edges.node_ptr.tolist()) == (0, 0, [0, 0, 0, 0])
    assert as_list(edges.without(torch.empty(0, dtype=torch.long))) == []


@given(triples_of, triples_of)
def test_an_edge_is_there_exactly_if_it_was_given(triples: Triples, asked: Triples) -> None:
    node, type_, neighbour = torch.tensor(asked, dtype=torch.long).reshape(-1, 3).T
    assert build(triples).has(node, type_, neighbour).tolist() == [edge in triples for edge in asked]


def test_a_graph_whose_edges_no_single_integer_can_number_is_sorted_all_the_same() -> None:
    # 4·10^6 nodes and 10^6 types: node, type and neighbour as one integer would need 64 bits.
    num_nodes, num_types = 4_000_000, 1_000_000
    rng = np.random.default_rng(0)
    triples = [
        (int(n), int(t), int(v))
        for n, t, v in zip(
            rng.choice([0, 3, num_nodes - 1], 40),
            rng.choice([0, num_types - 1], 40),
            rng.choice([1, num_nodes - 1], 40),
            strict=True,
        )
    ]
    edges = build(triples, num_nodes, num_types)
    assert as_list(edges) == sorted(triples)
    assert edges.has(*(torch.tensor([row]) for row in triples[7])).item()
