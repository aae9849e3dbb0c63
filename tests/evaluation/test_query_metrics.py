"""Ranks of hard answers and their means, worked by hand."""

import numpy as np
import pytest
import torch

from gamma_kg.evaluation.query_metrics import QueryScore, score_query, summary
from gamma_kg.logic.formula import Entity
from gamma_kg.logic.sample import LogicalQuery


def query(easy: list[int], hard: list[int], unseen: list[int], balance: str = "classic") -> LogicalQuery:
    return LogicalQuery("2p", balance, Entity(0).along(1, 1), *(np.array(ids) for ids in (easy, hard, unseen)))


def test_hard_answers_are_ranked_among_entities_that_are_no_answers() -> None:
    #                         easy  hard       hard
    member = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.1])
    found = score_query(query([1], [2, 4], [4]), member)
    # Entity 2: only entity 0 is above. Entity 4: 0, 3 and 5 are above, 6 ties.
    assert found.mrr == pytest.approx((1 / 2 + 1 / 5) / 2)
    assert found.fair_mrr == pytest.approx((1 / 2 + 1 / 4.5) / 2)
    assert found.hits_at_10 == 1
    assert found.cardinality_error == pytest.approx(abs(4 - 3) / 3)


def test_the_balance_unseen_ranks_only_answers_that_need_all_links() -> None:
    member = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.1, 0.2, 0.1])
    assert score_query(query([1], [2, 4], [4], "unseen"), member).mrr == pytest.approx(1 / 5)


def test_a_membership_that_is_not_finite_never_ranks_first() -> None:
    with pytest.raises(ValueError, match="finite"):
        score_query(query([], [0], []), torch.tensor([float("nan"), 0.0]))


def test_means_go_over_queries_then_over_shapes() -> None:
    rows = [("1p", 1.0), ("1p", 0.0), ("2p", 1.0), ("2in", 0.25), ("other", 0.5)]
    found = summary([QueryScore(shape, value, value, value, 2 * value) for shape, value in rows])
    assert found["1p"]["mrr"] == 0.5 and found["1p"]["queries"] == 2
    assert found["epfo"]["mrr"] == pytest.approx((0.5 + 1.0) / 2) and found["epfo"]["queries"] == 3
    assert found["negation"]["cardinality_error"] == 0.5
    assert found["other"]["mrr"] == 0.5
