from __future__ import annotations

import numpy as np
import torch

from gamma_kg.graph.inverse import both_ways, direct_of, fact_of, inverse_of, inverse_types, is_inverse


def test_reading_a_relation_twice_backwards_is_reading_it_forwards() -> None:
    for ids in (np.arange(6), torch.arange(6)):
        back = inverse_of(ids, 3)
        assert back.tolist() == [3, 4, 5, 0, 1, 2]
        assert inverse_of(back, 3).tolist() == ids.tolist()
        assert direct_of(back, 3).tolist() == direct_of(ids, 3).tolist() == [0, 1, 2, 0, 1, 2]
        assert is_inverse(ids, 3).tolist() == [False] * 3 + [True] * 3
    assert inverse_types(3).tolist() == [inverse_of(r, 3) for r in range(6)]
    assert len(inverse_types(0)) == 0


def test_a_fact_is_the_same_from_both_ends() -> None:
    triples = np.array([[7, 1, 8], [8, 0, 9]])
    rows = list(zip(*(column.tolist() for column in both_ways(triples, 2)), strict=True))
    assert rows == [(7, 1, 8), (8, 0, 9), (8, 3, 7), (9, 2, 8)]
    assert [fact_of(*row, 2) for row in rows] == [(7, 1, 8), (8, 0, 9)] * 2
