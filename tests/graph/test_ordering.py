from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gamma_kg.graph.ordering import first_of_each, sorted_pairs

pairs_of = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=20)


@given(pairs_of)
def test_two_columns_give_what_one_integer_gives(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    for most in (2**63 - 1, 0):
        columns = sorted_pairs(first, second, 5, 5, most=most)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == sorted(pairs)
        kept = first_of_each(first, second, 5, 5, most=most)
        assert [pairs[at] for at in kept.tolist()] == list(dict.fromkeys(pairs))
