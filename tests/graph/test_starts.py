import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.errors import DataError
from gamma_kg.graph.starts import Starts
from variants import VARIANTS

# Query 0 starts at 1 and 3, query 1 nowhere, query 2 at 0.
WEIGHTED = Starts.of_weights(
    torch.tensor([2, 0, 0, 2]), torch.tensor([0, 3, 1, 0]), torch.tensor([0.25, 2.0, -1.0, 0.5]), 3
)


def test_weights_are_sorted_by_query_and_node_and_repeated_pairs_added() -> None:
    assert WEIGHTED.node_S.tolist() == [1, 3, 0]
    assert WEIGHTED.weight_S is not None and WEIGHTED.weight_S.tolist() == [-1.0, 2.0, 0.75]
    assert WEIGHTED.offset_B1.tolist() == [0, 2, 2, 3] and len(WEIGHTED) == 3
    assert WEIGHTED.query_S.tolist() == [0, 0, 2]


def test_the_initial_states_are_weight_times_vector_at_each_start() -> None:
    vector = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    wanted = torch.zeros(3, 4, 2)
    wanted[0, 1], wanted[0, 3], wanted[2, 0] = -vector[0], 2 * vector[0], 0.75 * vector[2]
    assert torch.equal(WEIGHTED.spread(4, vector), wanted)


def test_a_dense_matrix_gives_its_entries_that_are_not_zero() -> None:
    dense = WEIGHTED.spread(4, torch.ones(3, 1))[..., 0]
    found = Starts.of_dense(dense)
    assert found.node_S.tolist() == [1, 3, 0] and found.offset_B1.tolist() == [0, 2, 2, 3]
    assert torch.equal(found.spread(4, torch.ones(3, 1))[..., 0], dense)


EVERYWHERE = Starts.of_dense(torch.arange(1.0, 13.0).view(3, 4))


@pytest.mark.parametrize(
    "starts",
    [WEIGHTED, Starts.single(torch.tensor([2, 0, 3])), EVERYWHERE],
    ids=["weighted", "single", "everywhere"],
)
def test_parts_choices_and_new_names_keep_what_each_query_starts_from(starts: Starts) -> None:
    vector = torch.randn(3, 2)
    whole = starts.spread(4, vector)
    assert torch.equal(starts[1:3].spread(4, vector[1:3]), whole[1:3])
    chosen = torch.tensor([2, 0, 2])
    assert torch.equal(starts.select(chosen).spread(4, vector[chosen]), whole[chosen])
    place = torch.tensor([3, 1, 0, 2])
    assert torch.equal(starts.renamed(place).spread(4, vector)[:, place], whole)


def test_weights_get_their_gradients() -> None:
    weight = torch.tensor([2.0, -1.0], requires_grad=True)
    starts = Starts.of_weights(torch.tensor([0, 0]), torch.tensor([1, 1]), weight, 1)
    starts.spread(2, torch.tensor([[3.0, 4.0]])).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None and weight.grad.tolist() == [7.0, 7.0]


@pytest.mark.parametrize("name", ["gamma", "ultra", "gamma-early", "own relation encoders"])
def test_one_start_of_weight_one_is_a_single_source(name: str, family: KnowledgeGraph) -> None:
    gamma = Gamma.from_config(VARIANTS[name].with_options(num_layers=2, dim=8), seed=1)
    gamma.model.double()
    source, relation = torch.tensor([0, 3, 1, 3]), torch.tensor([1, 0, 5, 0])
    wanted = gamma.scores(family, source, relation)
    starts = Starts.of_weights(torch.arange(4), source, torch.ones(4, dtype=torch.float64), 4)
    for batch in gamma.score_batches(family, starts, relation):
        torch.testing.assert_close(batch.scores.score_BC[batch.row], wanted[batch.query], rtol=1e-12, atol=1e-12)


def test_starts_outside_the_graph_are_refused(family: KnowledgeGraph, small_gamma: Gamma) -> None:
    outside = Starts.single(torch.tensor([family.num_entities]))
    with pytest.raises(DataError, match="source ids must lie in"):
        next(small_gamma.score_batches(family, outside, torch.tensor([0])))
    with pytest.raises(DataError, match="same length"):
        next(small_gamma.score_batches(family, outside, torch.tensor([0, 1])))
