"""What docs/speed.md promises of the last bits: forward they depend on graph, model and machine, on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gamma_kg import Gamma, KnowledgeGraph
from gamma_kg.predicting.switch import Local
from variants import VARIANTS


@pytest.fixture(scope="module")
def large() -> KnowledgeGraph:
    """Large enough that a query is cut into parts, with a hub that cuts go through."""
    rng = np.random.default_rng(3)
    triples = np.column_stack([rng.integers(limit, size=20_000) for limit in (3_000, 40, 3_000)])
    triples[:8_000, 0] = 17
    return KnowledgeGraph(triples, [f"e{i}" for i in range(3_000)], [f"r{i}" for i in range(40)])


@pytest.mark.parametrize("local", ["off", 6_000])
@pytest.mark.parametrize("name", ["gamma", "ultra", "own relation encoders"])
def test_threads_memory_and_company_change_no_bit(name: str, local: Local, large: KnowledgeGraph) -> None:
    gamma = Gamma.from_config(VARIANTS[name].with_options(num_layers=3), seed=1)
    source, relation = torch.arange(0, 3_000, 333), torch.arange(0, 80, 8)[:10]
    source = source[: len(relation)]
    wanted = gamma.scores(large, source, relation, local=local)
    before = torch.get_num_threads()
    try:
        for threads in (2, 3):
            torch.set_num_threads(threads)
            assert torch.equal(Gamma(gamma.model).scores(large, source, relation, local=local), wanted), (
                f"{threads} threads"
            )
    finally:
        torch.set_num_threads(before)
    assert torch.equal(Gamma(gamma.model).scores(large, source, relation, memory="8MB", local=local), wanted)
    # Another predictor each time: what one has found of the relations it keeps, and would not compute again.
    queries = zip(source[:, None], relation[:, None], strict=True)
    alone = torch.cat([Gamma(gamma.model).scores(large, *query, local=local) for query in queries])
    assert torch.equal(alone, wanted)


def test_what_is_explained_on_a_neighbourhood_has_the_bits_of_what_is_predicted(large: KnowledgeGraph) -> None:
    gamma = Gamma.from_config(VARIANTS["gamma"].with_options(num_layers=3), seed=1)
    query = {"head": "e17", "relation": "r3", "local": 2_000}
    for answer in gamma.predict(large, **query, top_k=2):
        found = gamma.explain(large, **query, tail=answer.name, num_paths=1, num_facts=1)
        assert (found.score, found.probability) == (answer.score, answer.probability)
