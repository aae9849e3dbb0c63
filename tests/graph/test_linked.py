import itertools
from collections import deque

import numpy as np
import pytest

from gamma_kg.graph.edges import Edges
from gamma_kg.graph.linked import are_beside, linked_without


def distance_without(triples: list[tuple[int, int, int]], gone: int, twins: bool) -> float:
    """Steps between the ends of fact number `gone` over all others, by plain breadth-first search."""
    start, _, goal = triples[gone]
    others = [
        triple
        for number, triple in enumerate(triples)
        if number != gone and (twins or {triple[0], triple[2]} != {start, goal})
    ]
    if start == goal:
        return 1 if any(h == t == start for h, _, t in others) else np.inf
    seen, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for h, _, t in others:
            for there in {h: [t], t: [h]}.get(here, []) if h != t else []:
                if there not in seen:
                    seen[there] = seen[here] + 1
                    queue.append(there)
    return seen.get(goal, np.inf)


@pytest.mark.parametrize("seed", range(8))
def test_as_a_search_that_leaves_the_fact_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 40))
    triples = np.unique(rng.integers(0, [size, 3, size], size=(size + int(rng.integers(0, size)), 3)), axis=0)
    edges, facts = Edges.of_triples(triples, size, 3), [tuple(map(int, triple)) for triple in triples]
    for steps, twins in itertools.product((2, 3, 4, 5), (True, False)):
        expected = [distance_without(facts, number, twins) <= steps for number in range(len(facts))]
        assert linked_without(edges, triples, steps, twins=twins).tolist() == expected


def test_two_entities_are_beside_each_other_whichever_way_a_fact_is_read() -> None:
    edges = Edges.of_triples(np.array([(0, 0, 1), (1, 1, 0), (0, 1, 2), (2, 0, 2), (1, 0, 3)]), 4, 2)
    assert are_beside(edges, np.array([1, 0, 3, 3]), np.array([0, 3, 1, 3])).tolist() == [True, False, True, False]


def test_a_chain_is_cut_and_a_ring_is_not() -> None:
    chain = np.array([[i, 0, i + 1] for i in range(4)])
    ring = np.concatenate((chain, [[4, 0, 0]]))
    assert not linked_without(Edges.of_triples(chain, 5, 1), chain).any()
    assert linked_without(Edges.of_triples(ring, 5, 1), ring).all()
    assert not linked_without(Edges.of_triples(ring, 5, 1), ring, steps=3).any()
