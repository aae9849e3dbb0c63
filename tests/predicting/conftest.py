import numpy as np
import pytest

from gamma_kg import KnowledgeGraph


@pytest.fixture(scope="module")
def town() -> KnowledgeGraph:
    """Two hundred facts about seventy entities; the last ten have no fact."""
    rng = np.random.default_rng(0)
    ends = (60 * rng.random((200, 2)) ** 2).astype(np.int64)
    triples = np.column_stack((ends[:, 0], rng.integers(3, size=200), ends[:, 1]))
    return KnowledgeGraph(triples, [f"e{i}" for i in range(70)], ["r0", "r1", "r2"])
