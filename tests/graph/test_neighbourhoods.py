from pathlib import Path

import numpy as np
import pytest
import torch

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import Edges
from gamma_kg.graph.neighbourhoods import Neighbourhoods, grow_plain
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import native
from gamma_kg.kernels.growth import grow

needs_native = pytest.mark.skipif(native.module() is None, reason="the native module is not built")


def random_edges(rng: np.random.Generator, num_nodes: int, num_triples: int, num_relations: int, skew: float) -> Edges:
    ends = (num_nodes * rng.random((num_triples, 2)) ** skew).astype(np.int64)
    triples = np.column_stack((ends[:, 0], rng.integers(num_relations, size=num_triples), ends[:, 1]))
    return Edges.of_triples(triples, num_nodes, num_relations)


def plainly(edges: Edges, starts: Starts, triples: int, restart: float) -> Neighbourhoods:
    weight_S = torch.ones(len(starts.node_S)).double() if starts.weight_S is None else starts.weight_S.double()
    return grow_plain(edges, starts.node_S, weight_S, starts.offset_B1, triples, restart)


def assert_same(found: Neighbourhoods, expected: Neighbourhoods) -> None:
    assert found.offset_B1.tolist() == expected.offset_B1.tolist()
    assert found.entity_N.tolist() == expected.entity_N.tolist()
    for name in ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse"):
        assert torch.equal(getattr(found.edges, name), getattr(expected.edges, name)), name


@needs_native
@pytest.mark.parametrize("seed", range(24))
def test_the_native_routine_does_what_the_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_nodes = int(rng.integers(2, 200))
    edges = random_edges(
        rng, num_nodes, int(rng.integers(1, 900)), int(rng.integers(1, 6)), float(rng.choice([1, 2, 4]))
    )
    query_M = torch.from_numpy(rng.integers(4, size=6))  # some queries start nowhere, some in several places
    starts = Starts.of_weights(
        query_M, torch.from_numpy(rng.integers(num_nodes, size=6)), torch.from_numpy(rng.random(6)), 4
    )
    for triples in (1, 7, 60, 5000):  # a small budget makes hubs of most nodes
        restart = float(rng.choice([0.1, 0.15, 0.5]))
        assert_same(grow(edges, starts, triples, restart), plainly(edges, starts, triples, restart))


@pytest.mark.parametrize("source", [[3, 3, 3], [5, 1, 5, 0, 1, 199], [7]])
def test_queries_of_one_source_share_its_growth(source: list[int]) -> None:
    edges = random_edges(np.random.default_rng(0), 200, 500, 4, 1.0)  # few facts: some nodes have none
    source_U, which_B = torch.tensor(source).unique(return_inverse=True)
    each = grow(edges, torch.tensor(source), 40)
    assert_same(grow(edges, source_U, 40).repeated(which_B), each)
    assert each.edges.num_nodes == len(each.entity_N)


def mapped(path: Path, dtype: str, count: int, last: list[int]) -> torch.Tensor:
    """An array of a file that is all holes, and so zeros, but for its end: it has a size and takes no room."""
    end = np.array(last, dtype=dtype)
    with path.open("wb") as file:
        file.truncate(count * end.itemsize)
        file.seek(-end.nbytes, 2)
        file.write(end.tobytes())
    return torch.from_numpy(np.memmap(path, dtype=dtype, mode="r+", shape=(count,)))


def test_ids_and_places_go_as_far_as_31_and_41_bits(tmp_path: Path) -> None:
    """The four highest of 2^31 - 1 entities; before their edges come those of another one, 2^41 in all (2^40 facts)."""
    small = Edges.of_triples(np.array([[0, 0, 1], [1, 1, 2], [2, 0, 0], [0, 1, 3]]), 4, 2)
    num_nodes, num_edges = 2**31 - 1, 2**41
    first, before = num_nodes - 4, num_edges - small.num_edges
    node_ptr = [0, *(1 + small.node_ptr).tolist()]  # the hub, and then the four
    edges = Edges(
        num_nodes,
        small.num_types,
        mapped(tmp_path / "node_ptr", "<i8", num_nodes + 1, node_ptr),
        torch.cat((torch.zeros(1, dtype=torch.int32), small.group_type)),
        torch.cat((torch.zeros(1, dtype=torch.long), before + small.group_ptr)),
        mapped(tmp_path / "neighbour", "<i4", num_edges, (first + small.neighbour).tolist()),
        small.inverse,
    )
    for starts in (torch.tensor([0]), torch.tensor([3, 2])):
        found, expected = grow(edges, first + starts, 10), grow(small, starts, 10)
        assert_same(found, Neighbourhoods(expected.edges, expected.offset_B1, first + expected.entity_N))
        assert_same(plainly(edges, Starts.single(first + starts), 10, 0.15), found)
    node, type_, other = small.slice(0, small.num_edges)
    assert edges.has(first + node, type_, first + other).all()
    assert not edges.has(first + node, type_, first + other - 1).all()
    assert [part[-1].item() for part in edges.slice(num_edges - 2, num_edges)] == [first + 3, 3, first]


@needs_native
def test_several_threads_find_the_same_neighbourhoods_as_one() -> None:
    edges = random_edges(np.random.default_rng(0), 300, 2000, 4, 2)
    alone = grow(edges, torch.arange(40), 50)
    torch.set_num_threads(2)
    try:
        assert_same(grow(edges, torch.arange(40), 50), alone)
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("triples", [1, 10, 100])
def test_a_neighbourhood_has_all_facts_among_its_entities_and_no_more_than_asked_for(triples: int) -> None:
    edges = random_edges(np.random.default_rng(1), 60, 400, 3, 2)
    hoods = grow(edges, torch.tensor([5, 50]), triples)
    node, type_, neighbour = edges.slice(0, edges.num_edges)
    for b, small in enumerate(hoods.split()):
        entity = hoods.entity_N[hoods.offset_B1[b] : hoods.offset_B1[b + 1]]
        inside = torch.isin(node, entity) & torch.isin(neighbour, entity)
        at, kind, other = small.slice(0, small.num_edges)
        found = torch.stack((entity[at], kind, entity[other]), 1).tolist()
        assert sorted(found) == sorted(torch.stack((node, type_, neighbour), 1)[inside].tolist())
        assert small.num_edges <= 2 * triples or small.num_nodes == 1


def test_the_start_comes_first_and_the_nearest_before_the_far() -> None:
    path = np.array([[i, 0, i + 1] for i in range(30)])
    hoods = grow(Edges.of_triples(path, 31, 1), torch.tensor([10]), 8)
    assert hoods.entity_N[0] == 10
    assert sorted(hoods.entity_N.tolist()) == list(range(6, 15))


def test_a_component_that_fits_comes_in_whole() -> None:
    triples = np.array([[0, 0, 1], [1, 0, 2], [3, 0, 4], [5, 0, 5]])
    edges = Edges.of_triples(triples, 7, 1)
    hoods = grow(edges, torch.tensor([2, 4, 5, 6]), 100)
    assert [sorted(part.tolist()) for part in hoods.entity_N.split(hoods.offset_B1.diff().tolist())] == [
        [0, 1, 2],
        [3, 4],
        [5],
        [6],
    ]
    assert [small.num_edges for small in hoods.split()] == [4, 2, 2, 0]


def test_weights_draw_a_neighbourhood_towards_their_start() -> None:
    path = np.array([[i, 0, i + 1] for i in range(40)])
    edges = Edges.of_triples(path, 41, 1)

    def near(weight: float) -> int:
        starts = Starts(torch.tensor([5, 35]), torch.tensor([weight, 1 - weight]), torch.tensor([0, 2]))
        return int((grow(edges, starts, 12).entity_N < 20).sum())

    assert near(0.9) > near(0.5) > near(0.1)


def test_places_tell_where_an_entity_stands() -> None:
    hoods = grow(Edges.of_triples(np.array([[0, 0, 1], [2, 0, 3]]), 4, 1), torch.tensor([0, 3]), 10)
    place = hoods.places(torch.tensor([0, 1, 1, 0]), torch.tensor([1, 2, 1, 3]))
    assert hoods.entity_N[place[:2]].tolist() == [1, 2]
    assert place[2:].tolist() == [-1, -1]


@needs_native
def test_edges_on_disk_do_as_well(tmp_path: Path) -> None:
    edges = random_edges(np.random.default_rng(2), 100, 500, 3, 2)
    on_disk = {}
    for name in ("node_ptr", "group_type", "group_ptr", "neighbour", "inverse"):
        np.save(tmp_path / f"{name}.npy", getattr(edges, name).numpy())
        on_disk[name] = torch.from_numpy(np.load(tmp_path / f"{name}.npy", mmap_mode="c"))
    mapped = Edges(edges.num_nodes, edges.num_types, **on_disk)
    assert_same(grow(mapped, torch.arange(10), 30), grow(edges, torch.arange(10), 30))


@needs_native
@pytest.mark.parametrize(
    ("name", "value"),
    [("neighbour", 10**6), ("neighbour", -3), ("group_type", 99), ("group_ptr", 10**9), ("node_ptr", -1)],
)
def test_edges_that_point_outside_of_their_arrays_are_refused(name: str, value: int) -> None:
    edges = random_edges(np.random.default_rng(3), 50, 300, 3, 1)
    getattr(edges, name)[1:-1:2] = value
    with pytest.raises(DataError, match="damaged"):
        grow(edges, torch.arange(50), 200)


def test_starts_outside_of_the_graph_are_refused() -> None:
    edges = Edges.of_triples(np.array([[0, 0, 1]]), 2, 1)
    with pytest.raises(DataError, match=r"0\.\.1"):
        grow(edges, torch.tensor([2]), 5)
    with pytest.raises(DataError, match="at least one"):
        grow(edges, torch.tensor([0]), 0)
