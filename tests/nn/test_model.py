"""What every variant must keep: names and numbers of a graph carry no meaning, odd graphs work, runs repeat."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gamma_kg import Gamma, GammaConfig, KnowledgeGraph
from gamma_kg.graph.starts import Starts
from gamma_kg.kernels.algebra import ALGEBRAS
from variants import VARIANTS as ALL

# Each variant and each message function, small enough to run hundreds of times; in float64 only rounding may differ.
VARIANTS = {name: config.with_options(dim=6, num_layers=3, mlp_hidden=None) for name, config in ALL.items()}
VARIANTS |= {name: GammaConfig(branches=(name,), dim=6, num_layers=3) for name, a in ALGEBRAS.items() if not a.bilinear}
MODELS = {name: Gamma.from_config(config, seed=1) for name, config in VARIANTS.items()}
for gamma in MODELS.values():
    gamma.model.double()


def graph(triples: np.ndarray, num_entities: int, num_relations: int) -> KnowledgeGraph:
    names = [f"e{i}" for i in range(num_entities)], [f"r{i}" for i in range(num_relations)]
    return KnowledgeGraph(triples, *names, keep_duplicates=True)


def all_queries(kg: KnowledgeGraph) -> tuple[torch.Tensor, torch.Tensor]:
    source, relation = torch.meshgrid(torch.arange(kg.num_entities), torch.arange(2 * kg.num_relations), indexing="ij")
    return source.flatten(), relation.flatten()


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_renumbering_permutes_the_scores_and_nothing_else(name: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    num_entities, num_relations = int(generator.integers(2, 9)), int(generator.integers(1, 4))
    size = int(generator.integers(1, 20))
    triples = np.stack([generator.integers(n, size=size) for n in (num_entities, num_relations, num_entities)], axis=1)
    entity, relation = generator.permutation(num_entities), generator.permutation(num_relations)
    renumbered = np.stack([entity[triples[:, 0]], relation[triples[:, 1]], entity[triples[:, 2]]], axis=1)
    before, after = graph(triples, num_entities, num_relations), graph(renumbered, num_entities, num_relations)

    source, query = all_queries(before)
    directed = np.concatenate((relation, relation + num_relations))
    scores = MODELS[name].scores(before, source, query)
    moved = MODELS[name].scores(after, torch.from_numpy(entity)[source], torch.from_numpy(directed)[query])
    torch.testing.assert_close(moved[:, torch.from_numpy(entity)], scores, rtol=1e-8, atol=1e-8)


ODD_GRAPHS = {
    "one triple": [(0, 0, 1)],
    "a self-loop": [(0, 0, 0)],
    "parallel edges": [(0, 0, 1), (0, 1, 1), (0, 0, 1)],
    "isolated entities": [(3, 1, 4)],
    "no triple at all": [],
}


@pytest.mark.parametrize("kind", ODD_GRAPHS)
@pytest.mark.parametrize("name", VARIANTS)
def test_odd_graphs_give_finite_scores(name: str, kind: str) -> None:
    kg = graph(np.asarray(ODD_GRAPHS[kind], dtype=np.int64).reshape(-1, 3), 6, 2)
    scores = MODELS[name].scores(kg, *all_queries(kg))
    assert scores.shape == (24, 6) and scores.isfinite().all()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_same_input_gives_the_same_bits(name: str, family: KnowledgeGraph) -> None:
    gamma = Gamma.from_config(VARIANTS[name], seed=1)
    queries = all_queries(family)
    first = gamma.scores(family, *queries)
    again = Gamma.from_config(VARIANTS[name], seed=1).scores(family, *queries)
    assert first.equal(again)
    some = torch.arange(0, len(first), 9)
    one_by_one = torch.cat([gamma.scores(family, queries[0][i, None], queries[1][i, None]) for i in some])
    torch.testing.assert_close(one_by_one, first[some], rtol=0, atol=1e-5)


def test_facts_change_scores(family: KnowledgeGraph) -> None:
    """A score that ignored the graph would pass every test above."""
    fewer = KnowledgeGraph(family.triples[:-1], family.entities, family.relations)
    for name, gamma in MODELS.items():
        finn = family.entity_id("Finn")
        assert not gamma.scores(family, [finn], [0]).equal(gamma.scores(fewer, [finn], [0])), name


def test_branch_weights_are_a_distribution_bounded_by_the_uniform_share(family: KnowledgeGraph) -> None:
    for name in ("gamma", "gamma-no-query", "gamma-no-key", "ultra-att", "gamma-early"):
        gamma = MODELS[name]
        (batch,) = gamma.score_batches(family, torch.tensor([0]), torch.tensor([1]))
        weights = batch.scores.weight_BCK
        assert weights is not None
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert weights.min() >= gamma.config.uniform_mix / 2 - 1e-9


def test_without_key_all_entities_share_the_weights_and_without_query_all_queries_differ_only_by_state(
    family: KnowledgeGraph,
) -> None:
    (batch,) = MODELS["gamma-no-key"].score_batches(family, torch.tensor([0, 3]), torch.tensor([1, 2]))
    weights = batch.scores.weight_BCK
    assert weights is not None
    assert weights[0].equal(weights[0, :1].expand_as(weights[0])) and not weights[0].equal(weights[1])


@pytest.mark.parametrize("name", VARIANTS)
def test_every_weight_learns(name: str, family: KnowledgeGraph) -> None:
    model = Gamma.from_config(VARIANTS[name], seed=1).model.double()
    relation = torch.tensor([0, 5, 2])
    out = model(family.edges, family.relation_graph, Starts.single(torch.tensor([0, 3, 1])), relation)
    out.score_BC.square().sum().backward()
    # A message function's offset or a key's scale can cancel at some weights, but never a whole tensor.
    still = [key for key, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert still == []


def test_candidates_are_scored_as_among_all_entities(family: KnowledgeGraph) -> None:
    model = MODELS["gamma"].model
    source, relation = torch.tensor([0, 3]), torch.tensor([1, 7])
    candidates = torch.tensor([[1, 2, 7], [0, 0, 5]])
    with torch.no_grad():
        everything = model(family.edges, family.relation_graph, Starts.single(source), relation).score_BC
        some = model(family.edges, family.relation_graph, Starts.single(source), relation, candidates).score_BC
    torch.testing.assert_close(some, everything.gather(1, candidates))
