"""Many small graphs in one call give what each gives alone."""

from __future__ import annotations

import pytest
import torch
from odd_graphs import BILINEAR, assert_alike, emptied, random_graph

from gamma_kg.errors import DataError
from gamma_kg.graph.edges import EdgeGroups, Edges
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels import backend_of
from gamma_kg.kernels.backend import plain_torch
from gamma_kg.kernels.union import part_of_union, ranges
from gamma_kg.nn.config import GammaConfig
from gamma_kg.nn.model import GammaModel, RelationStates, Scores
from variants import VARIANTS

NUM_RELATIONS = 4
# Of very different sizes; one is past the second cache, one has nothing but its node.
PARTS = [
    random_graph(1, 60, NUM_RELATIONS, 300),
    random_graph(2, 1, NUM_RELATIONS, 0),
    emptied(random_graph(3, 60, NUM_RELATIONS, 300)),
    random_graph(4, 2_500, NUM_RELATIONS, 4_000),
    random_graph(5, 300, NUM_RELATIONS, 6_000, star=True),
]


def side_by_side(parts: list[Edges]) -> tuple[EdgeGroups, torch.Tensor]:
    """The union of graphs, and where the nodes of each begin."""
    first = torch.tensor([0] + [part.num_nodes for part in parts]).cumsum(0)
    groups = torch.tensor([0] + [part.num_groups for part in parts]).cumsum(0)
    edges = torch.tensor([0] + [part.num_edges for part in parts]).cumsum(0)
    zero = torch.zeros(1, dtype=torch.int64)
    union = EdgeGroups(
        int(first[-1]),
        2 * NUM_RELATIONS,
        torch.cat([zero] + [part.node_ptr[1:] + at for part, at in zip(parts, groups, strict=False)]),
        torch.cat([part.group_type for part in parts]),
        torch.cat([zero] + [part.group_ptr[1:] + at for part, at in zip(parts, edges, strict=False)]),
        torch.cat([part.neighbour + int(at) for part, at in zip(parts, first, strict=False)]),
        parts[0].inverse,
    )
    return union, first


UNION, OFFSET = side_by_side(PARTS)


class Case:
    """A small model with relation states, and a query on each part: weighted starts, shared and other relations."""

    def __init__(self, config: GammaConfig, dtype: torch.dtype = torch.float64) -> None:
        torch.manual_seed(3)
        self.model = GammaModel(config).to(dtype).eval()
        state_URQ = torch.randn(3, 2 * NUM_RELATIONS, config.query_width, dtype=dtype)
        self.relations = RelationStates(state_URQ, torch.tensor([0, 2, 0, 1, 2]))
        self.relation_B = torch.tensor([1, 7, 5, 0, 3])
        query = torch.tensor([0, 0, 1, 2, 3, 3, 3])
        node = torch.tensor([7, 3, 0, 59, 2_499, 0, 1_000])
        weight = torch.randn(7, dtype=dtype)
        self.query, self.node, self.weight = query, node, weight  # the last part starts nowhere

    def together(self, union: EdgeGroups = UNION, offset: torch.Tensor = OFFSET) -> Scores:
        starts = Starts.of_weights(self.query, self.node + offset[self.query], self.weight, 5)
        return self.model.score_neighbourhoods(union, offset, self.relations, starts, self.relation_B)

    @torch.no_grad()
    def alone(self) -> Scores:
        found = []
        for b, part in enumerate(PARTS):
            mine = self.query == b
            starts = Starts.of_weights(torch.zeros_like(self.query[mine]), self.node[mine], self.weight[mine], 1)
            relations = RelationStates(self.relations.state_URQ, self.relations.which_B[b : b + 1])
            found.append(self.model.score_entities(part, relations, starts, self.relation_B[b : b + 1]))
        weights = [scores.weight_BCK[0] for scores in found if scores.weight_BCK is not None]
        return Scores(torch.cat([s.score_BC[0] for s in found]), torch.cat(weights) if weights else None)


def small(name: str) -> GammaConfig:
    return VARIANTS[name].with_options(dim=20, num_layers=3, mlp_hidden=None)


def compare(found: Scores, wanted: Scores) -> None:
    assert_alike(found.score_BC, wanted.score_BC)
    assert (found.weight_BCK is None) == (wanted.weight_BCK is None)
    if found.weight_BCK is not None and wanted.weight_BCK is not None:
        assert_alike(found.weight_BCK, wanted.weight_BCK)


@pytest.mark.parametrize("name", VARIANTS)
def test_scores_together_are_those_of_each_graph_alone(name: str, threads: int) -> None:
    case = Case(small(name))
    compare(case.together(), case.alone())


@pytest.mark.parametrize("algebra", [*BILINEAR, "mobius"])
@pytest.mark.parametrize("dim", [64, 10])
def test_every_algebra_agrees_with_plain_torch(algebra: str, dim: int) -> None:
    case = Case(GammaConfig(branches=(algebra, "real"), dim=dim, num_layers=2))
    found = case.together()
    with plain_torch():
        compare(found, case.together())


def test_the_bits_do_not_depend_on_threads_or_on_the_graphs_beside() -> None:
    case = Case(small("gamma"), torch.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        two = case.together().score_BC
    finally:
        torch.set_num_threads(before)
    assert torch.equal(case.together().score_BC, two)
    some, offset = side_by_side(PARTS[:4])
    starts = Starts.of_weights(case.query, case.node + offset[case.query], case.weight, 4)
    relations = RelationStates(case.relations.state_URQ, case.relations.which_B[:4])
    fewer = case.model.score_neighbourhoods(some, offset, relations, starts, case.relation_B[:4])
    assert torch.equal(fewer.score_BC, two[: int(offset[-1])])


def test_a_single_graph_and_none_at_all_will_do() -> None:
    case = Case(small("gamma"))
    relations = RelationStates(case.relations.state_URQ, case.relations.which_B[:1])
    starts, relation_B = Starts.single(torch.tensor([7])), case.relation_B[:1]
    union, offset = side_by_side(PARTS[:1])
    found = case.model.score_neighbourhoods(union, offset, relations, starts, relation_B)
    with torch.no_grad():
        wanted = case.model.score_entities(PARTS[0], relations, starts, relation_B)
    assert_alike(found.score_BC, wanted.score_BC[0])


def test_parts_of_a_union_are_the_graphs_it_is_made_of() -> None:
    for b, nodes in ranges(OFFSET):
        part = part_of_union(UNION, nodes)
        found, wanted = part.slice(0, part.num_edges), PARTS[b].slice(0, PARTS[b].num_edges)
        assert all(torch.equal(x, y) for x, y in zip(found, wanted, strict=True))


def test_an_edge_or_a_start_that_leaves_its_graph_is_refused() -> None:
    case = Case(small("ultra"))
    wrong = OFFSET.clone()
    wrong[3] += 5
    with pytest.raises(DataError, match="from one neighbourhood into another"):
        case.together(offset=wrong)
    case.node[0] = 60
    with pytest.raises(DataError, match="from one neighbourhood into another"):
        case.together()
    for offset in (OFFSET[:-1], OFFSET + 1, OFFSET.flip(0)):
        with torch.no_grad(), pytest.raises(ValueError, match="offsets: wanted"):
            backend_of(torch.device("cpu")).union_score([torch.zeros(UNION.num_nodes, 20)], offset, *_score_arguments())


def _score_arguments() -> tuple[torch.Tensor, object]:
    model = GammaModel(small("ultra"))
    return torch.zeros(5, 20), model.score.weights(None)
